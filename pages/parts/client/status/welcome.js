// What a first visitor is told. Cookies remember that it was shown and that it was dismissed: the server reads them on the
// next visit.
const YEAR_S = 31_536_000

export default function ({ data, parentElement, setTriggerValue }) {
  const box = parentElement.querySelector(".welcome")
  const keep = (name, value) => { document.cookie = `${name}=${value}; path=/; max-age=${YEAR_S}; SameSite=Lax` }
  keep(data.seen, "seen")
  box.querySelector(".what").textContent = data.what
  box.querySelector(".next").textContent = data.next
  box.querySelector("ol").replaceChildren(...data.steps.map(([title, about]) => {
    const item = document.createElement("li")
    item.append(Object.assign(document.createElement("b"), { textContent: title }), about)
    return item
  }))
  box.querySelector("button").onclick = () => {
    keep(data.cookie, "dismissed")
    setTriggerValue("dismissed", true)
  }
}
