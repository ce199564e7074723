// How dialogs behave: the first field has the cursor when one opens, Ctrl+Enter does what the filled button does, Esc hands
// over what was typed before it closes, so that it can be kept, and no key acts on the page behind.
const DIALOG = '[role="dialog"]'

const FIELD = "textarea:not(:disabled), input:not([type=hidden], [type=file]):not(:disabled), [role=radiogroup] button[tabindex=\"0\"]"
const UNSAID = `${DIALOG} [data-testid="stFileUploaderDropzone"][role="presentation"]`
const LOOK_MS = 60, HELD = 15

// A dialog is drawn in parts, and Streamlit gives the focus to its frame once it is there: the cursor is set until it has
// stayed for a moment, or until a person does something or is in another field.
function takeCursor(dialog) {
  const opened = performance.now()
  let held = 0, given = null
  const timer = setInterval(() => {
    const field = dialog.querySelector(FIELD)
    if (!dialog.isConnected || held > HELD || acted > opened) return clearInterval(timer)
    if (!field) return
    const at = document.activeElement
    if (at === field) held += 1
    else if (at !== given && dialog.contains(at) && at.matches(FIELD)) clearInterval(timer)
    else (given = field).focus()
  }, LOOK_MS)
}

let acted = 0

function press(event) {
  const dialog = event.target.closest?.(DIALOG)
  if (!dialog) return
  if (event.key === "Escape") return document.activeElement?.blur()
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return
  document.activeElement?.blur()
  setTimeout(() => dialog.querySelector('button[kind="primary"]:not(:disabled)')?.click())
}

// What takes the keys while it is open. A popover that only tells something leaves them to the page: it may be the list of keys.
const COVERS = ['[data-testid="stDialog"]', '[role="menu"]', '[role="listbox"]', '[data-testid="stPopoverBody"] :is(input, textarea)'].join()

// The page's keys, Streamlit's shortcuts among them, are heard at the document: what is open hears them before that. Tab goes on,
// as a dialog that keeps the cursor in it hears it there.
function keepFromPage(event) {
  if (event.key !== "Tab" && document.querySelector(COVERS)) event.stopPropagation()
}

function mindManners() {
  addEventListener("keydown", press, true)
  document.body.addEventListener("keydown", keepFromPage)
  for (const act of ["pointerdown", "keydown"]) addEventListener(act, () => { acted = performance.now() }, true)
  let shown = null
  new MutationObserver(() => {
    // Streamlit names the field for a file and says that it is nothing: a screen reader would leave out the name.
    document.querySelector(UNSAID)?.setAttribute("role", "group")
    const dialog = document.querySelector(DIALOG)
    if (dialog === shown) return
    shown = dialog
    if (dialog) takeCursor(dialog)
  }).observe(document.body, { childList: true, subtree: true })
}
