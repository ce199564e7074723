// What a first visitor is told. A cookie remembers that it was dismissed: the server reads it on the next visit.
const YEAR_S = 31_536_000

export default function ({ data, parentElement, setTriggerValue }) {
  const box = parentElement.querySelector(".welcome")
  box.querySelector(".what").textContent = data.what
  box.querySelector(".next").textContent = data.next
  box.querySelector("ol").replaceChildren(...data.steps.map(([title, about]) => {
    const item = document.createElement("li")
    item.append(Object.assign(document.createElement("b"), { textContent: title }), about)
    return item
  }))
  box.querySelector("button").onclick = () => {
    document.cookie = `${data.cookie}=dismissed; path=/; max-age=${YEAR_S}; SameSite=Lax`
    setTriggerValue("dismissed", true)
  }
}
