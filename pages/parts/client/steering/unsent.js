// What is typed for a run (drafts.py) and was not told yet. A field tells it only once it is left, and a page that is left by
// its address leaves no time for that. So each key is kept in the browser too, and what is found there is put back.
const UNSENT = "tilewright:unsent:", DRAFT = "st-key-draft-"
const TOLD_MS = 1500, LOOK_AGAIN_MS = 150, OLD_MS = 14 * 86_400_000

const draftOf = field => field.closest?.(`[class*="${DRAFT}"]`)?.className.split(" ").find(name => name.startsWith(DRAFT))

const isAtRest = () => {
  const app = document.querySelector('[data-testid="stApp"]')?.dataset
  return app?.testScriptState === "notRunning" && app.testConnectionState === "CONNECTED"
}

function keepUnsent() {
  const unsent = new Map(stored())
  addEventListener("input", ({ target }) => {
    const name = draftOf(target)
    if (!name) return
    unsent.set(name, target.value)
    store(name, { at: Date.now(), text: target.value })
  }, true)
  // It was left and is told. Whoever leaves the page meanwhile finds it here.
  addEventListener("focusout", ({ target }) => { if (unsent.has(draftOf(target))) forgetTold(target, draftOf(target)) }, true)
  const timers = new Map()
  const forgetTold = (field, name) => {
    clearTimeout(timers.get(name))
    timers.set(name, setTimeout(() => {
      if (!isAtRest()) return forgetTold(field, name)
      timers.delete(name)
      if (field.isConnected && document.activeElement === field) return  // somebody types on
      unsent.delete(name)
      store(name, null)
    }, TOLD_MS))
  }
  let timer
  const putBack = () => {
    timer = 0
    if (!isAtRest()) return look()
    for (const field of document.querySelectorAll(`[class*="${DRAFT}"] :is(textarea, input)`)) {
      const name = draftOf(field), text = unsent.get(name)
      if (text === undefined || document.activeElement === field) continue
      if (text !== field.value) type(field, text)
      else if (!timers.has(name)) forgetTold(field, name)
    }
  }
  const look = () => { if (unsent.size) timer ||= setTimeout(putBack, LOOK_AGAIN_MS) }
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true })
  look()
}

// As a person would: a value that is only set is none for React.
function type(field, text) {
  Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), "value").set.call(field, text)
  field.dispatchEvent(new Event("input", { bubbles: true }))
  setTimeout(() => field.dispatchEvent(new FocusEvent("focusout", { bubbles: true })))
}

function store(name, draft) {
  try {
    if (draft) localStorage.setItem(UNSENT + name, JSON.stringify(draft))
    else localStorage.removeItem(UNSENT + name)
  } catch {}  // no room, or none allowed: then it is kept as long as the page is
}

function stored() {
  const found = []
  try {
    for (const key of Object.keys(localStorage)) {
      if (!key.startsWith(UNSENT)) continue
      const name = key.slice(UNSENT.length), { at, text } = JSON.parse(localStorage.getItem(key))
      if (Date.now() - at > OLD_MS) store(name, null)
      else found.push([name, text])
    }
  } catch {}
  return found
}
