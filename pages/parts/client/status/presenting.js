// While a page is presented the document has a class of its own. Esc ends that, before anybody else hears the key; a dialog is
// closed first.
const CLASS = "tilewright-presents"

export default function ({ data, setTriggerValue }) {
  document.documentElement.classList.toggle(CLASS, data.is_on)
  const leave = event => {
    if (event.key !== "Escape" || !document.documentElement.classList.contains(CLASS) || document.querySelector('[role="dialog"]')) return
    event.stopImmediatePropagation()
    document.documentElement.classList.remove(CLASS)
    setTriggerValue("left", true)
  }
  window.addEventListener("keydown", leave, true)
  return () => window.removeEventListener("keydown", leave, true)
}
