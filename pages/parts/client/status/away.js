// Says in our words that the server does not answer, and takes it back when it does. Streamlit's own words for it, a dialog
// in the middle and a sign in the corner, tell of a terminal that the reader may not have.
const PATIENCE_MS = 1200  // a connection that is back at once is not worth a word
const THEIRS = "Connection error"

function watch() {
  const found = { words: "", server: 0 }
  const state = () => document.querySelector('[data-testid="stApp"]')?.dataset.testConnectionState
  const note = Object.assign(document.createElement("div"), { id: "tilewright-away", hidden: true })
  note.setAttribute("role", "alert")
  document.body.append(note)
  let timer = 0
  const isThere = () => state() === "CONNECTED"
  const show = () => {
    if (isThere()) return
    note.textContent = found.words
    note.hidden = false
  }
  const look = () => {
    document.body.classList.toggle("tilewright-is-away", !isThere())
    if (!isThere()) { timer ||= setTimeout(show, PATIENCE_MS); return }
    if (timer) seeWhichServer()
    clearTimeout(timer)
    timer = 0
    note.hidden = true
  }
  // One that was started anew knows nothing of this page, and answers no click on it.
  const seeWhichServer = async () => {
    const answer = await fetch(new URL("api/pulse", document.baseURI)).catch(() => null)
    if (answer?.ok && (await answer.json()).server !== found.server) location.reload()
  }
  // Closed once, it stays away until the server is back; hidden, it would keep the page from being scrolled and read.
  const closeTheirs = () => {
    for (const dialog of isThere() ? [] : document.querySelectorAll('[data-testid="stDialog"]')) {
      if (dialog.textContent.startsWith(THEIRS)) dialog.querySelector('button[aria-label="Close"]')?.click()
    }
  }
  new MutationObserver(closeTheirs).observe(document.body, { childList: true })
  new MutationObserver(look).observe(document.body, {
    subtree: true, attributes: true, attributeFilter: ["data-test-connection-state"],
  })
  look()
  return found
}

export default function ({ data }) {
  const found = (window.tilewrightAway ??= watch())
  Object.assign(found, data)
}
