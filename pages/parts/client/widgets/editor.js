// A box for code, with line numbers. What is typed is told half a second after the last key, without leaving the box.
const PAUSE_MS = 500

export default function ({ data, parentElement, setStateValue }) {
  const area = parentElement.querySelector("textarea"), numbers = parentElement.querySelector(".numbers")
  area.setAttribute("aria-label", data.name)
  area.placeholder = data.placeholder
  const number = () => {
    numbers.textContent = Array.from({ length: area.value.split("\n").length }, (_, i) => i + 1).join("\n")
    numbers.scrollTop = area.scrollTop
  }
  const tell = () => { clearTimeout(area.timer); if (area.value !== area.told) setStateValue("text", area.told = area.value) }
  // Trap: the text is set once; drawn again, the page must not take back what was typed meanwhile.
  if (area.told === undefined) { area.value = area.told = data.text; number() }
  area.oninput = () => { number(); clearTimeout(area.timer); area.timer = setTimeout(tell, PAUSE_MS) }
  area.onblur = tell
  area.onscroll = () => { numbers.scrollTop = area.scrollTop }
}
