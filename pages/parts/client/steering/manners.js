// How dialogs behave: the first text field has the cursor when one opens, Ctrl+Enter does what the filled button does, and Esc
// hands over what was typed before it closes, so that it can be kept.
const DIALOG = '[role="dialog"]'

function takeCursor(dialog) {
  if (!dialog.contains(document.activeElement) || document.activeElement === dialog || document.activeElement.tagName === "BUTTON")
    dialog.querySelector("textarea, input[type=text]")?.focus()
}

function press(event) {
  const dialog = event.target.closest?.(DIALOG)
  if (!dialog) return
  if (event.key === "Escape") return document.activeElement?.blur()
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return
  document.activeElement?.blur()
  setTimeout(() => dialog.querySelector('button[kind="primary"]:not(:disabled)')?.click())
}

function mindManners() {
  addEventListener("keydown", press, true)
  let shown = null
  new MutationObserver(() => {
    const dialog = document.querySelector(DIALOG)
    if (dialog === shown || (dialog && !dialog.querySelector('button[kind="primary"]'))) return  // its last part is still to come
    shown = dialog
    if (dialog) setTimeout(() => takeCursor(dialog), 50)  // after Streamlit's own focus
  }).observe(document.body, { childList: true, subtree: true })
}
