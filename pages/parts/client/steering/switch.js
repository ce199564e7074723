// A choice as buttons side by side. Each click is told as what was clicked; drawing it, or taking it away, tells nothing.
export default function ({ data, parentElement, setTriggerValue }) {
  const box = parentElement.querySelector(".switch")
  parentElement.querySelector(".label").textContent = data.label
  box.title = data.help
  box.setAttribute("aria-label", data.label)
  while (box.childElementCount < data.options.length) box.append(document.createElement("button"))
  data.options.forEach((option, i) => {
    const button = box.children[i]
    button.textContent = option
    button.setAttribute("aria-pressed", String(option === data.value))
    button.onclick = () => setTriggerValue("clicked", option)
  })
}
