// Where a replay stands, as a bar to drag. Only a person's own move is told: it is drawn anew as the playback goes on.
export default function ({ data, parentElement, setTriggerValue }) {
  const range = parentElement.querySelector("input")
  const said = parentElement.querySelector("output")
  const say = () => {
    said.textContent = `step ${range.value} of ${data.last}`
    range.setAttribute("aria-valuetext", `step ${range.value} of ${data.last}`)
  }
  range.max = data.last
  if (!range.isHeld) range.value = data.step
  say()
  range.onpointerdown = () => { range.isHeld = true }
  range.onpointerup = range.onpointercancel = () => { range.isHeld = false }
  range.oninput = say
  range.onchange = () => { range.isHeld = false; setTriggerValue("step", Number(range.value)) }
}
