// What the engine does this second: the stages of the kernel in hand with the active one lit, and a clock that ticks in
// the browser. Also asks the server whether anything is new; only then does the page run again, so an idle page costs
// nothing. A page that is held still is not run again: it counts the events since.
const STAGES = ["write", "compile", "check", "time", "profile"]
const IDLE_MS = 60_000, SLOWEST_MS = 5000  // without news for so long, asking gets slower, down to this
const LONGEST_PRESS_MS = 2000  // longer, and its end was lost
const ON_ITS_WAY_MS = 3000  // from a click until the page is drawn again, at the longest
const PACE = "tilewright:refresh"

function clock(seconds) {
  const s = Math.max(0, Math.floor(seconds))
  const pad = n => String(n).padStart(2, "0")
  return s < 3600 ? `${Math.floor(s / 60)}:${pad(s % 60)}` : `${Math.floor(s / 3600)}:${pad(Math.floor(s / 60) % 60)}:${pad(s % 60)}`
}

function drawPipeline(list, active) {
  list.hidden = !active
  if (list.dataset.active === active && list.childElementCount) return
  list.dataset.active = active
  const at = Math.max(0, STAGES.indexOf(active))  // a strategy gives the steps that ask the model names of its own
  list.replaceChildren(...STAGES.map((name, i) => {
    const item = document.createElement("li")
    item.textContent = i === 0 && at === 0 ? active : name
    if (i < at) { item.className = "done"; item.setAttribute("aria-label", `${name}: done`) }
    if (i === at) { item.className = "active"; item.setAttribute("aria-current", "step") }
    return item
  }))
}

// The clock of a page that is held stands at the moment it was frozen.
function tick(box) {
  const { since, usual_s, usual, held_at, frozen, is_ending } = box.shown
  const passed = since ? (held_at ?? Date.now() / 1000 + box.skew) - since : 0
  box.querySelector(".clock").textContent = since ? clock(passed) : ""
  const left = usual_s - passed
  const ending = left > 0 ? `about ${Math.ceil(left)} s` : "any moment"
  const told = () => is_ending ? ending : usual[Number(passed > 2 * usual_s + 5)]
  box.querySelector(".usual").textContent = frozen || (since && usual_s ? told() : "")
  box.style.setProperty("--passed", since && usual_s ? `${Math.min(100, (100 * passed) / usual_s)}%` : "0%")
}

function pace() {
  try { return Number(sessionStorage.getItem(PACE)) || 0 } catch { return 0 }
}

// Trap: a rerun of the page while a click in its open dialog is on its way can swallow that click. A popover has the
// role of a dialog too, but the page behind it is still looked at: only a modal one holds it up.
// What is asked of a server that is away, or just back, cannot be sent.
const isAway = () => app().testConnectionState !== "CONNECTED"
const isDeaf = () => Boolean(document.hidden || isAway() || document.querySelector('[data-testid="stDialog"]'))
const isBusy = box => box.isAsking || isPressed() || isDrawing() || isDeaf()
// For what ticks on: whether the page hears of no change now, and when it last heard that there was none.
const news = (window.tilewrightNews ??= { isDeaf, heardAt: 0 })

// What Streamlit says of itself; looked for each time, as it may be put in place anew.
const app = () => document.querySelector('[data-testid="stApp"]')?.dataset ?? {}

// A button that moves or is drawn anew between a finger's down and up is not clicked.
let pressedAt = 0
const isPressed = () => Date.now() - pressedAt < LONGEST_PRESS_MS

// Whether the page is being drawn, or what a person did just now is on its way to the server and will have it drawn.
const ACTS = 'a, button, label, input, tr, [role="tab"], [role="option"], [role="button"]'
const acts = (window.tilewrightActs ??= watchActs())
const isDrawing = () => acts.isRunning() || Date.now() < acts.until

function watchActs() {
  const found = { until: 0, isRunning: () => ["running", "rerunRequested"].includes(app().testScriptState) }
  const act = () => { found.until = Date.now() + ON_ITS_WAY_MS }
  document.addEventListener("click", event => { if (event.composedPath().some(one => one.matches?.(ACTS))) act() }, true)
  document.addEventListener("keydown", event => { if (!isTyping(event) && event.key.length === 1) act() }, true)
  window.addEventListener("popstate", act, true)
  const look = () => { if (found.isRunning()) found.until = 0 }
  new MutationObserver(look).observe(document.body, {
    subtree: true, attributes: true, attributeFilter: ["data-test-script-state"],
  })
  return found
}

const isTyping = event => /^(INPUT|TEXTAREA|SELECT)$/.test(event.composedPath()[0].tagName)

function showFresh(box, count) {
  const button = box.querySelector(".fresh")
  button.hidden = box.shown.held_seq === null
  button.textContent = box.shown.is_sought ? "Back to playback" : `${count.toLocaleString("en")} new`
  button.title = box.shown.is_sought ? "" : "new events since the page was frozen; click to go live"
}

async function look(box) {
  if (isBusy(box)) return
  box.isAsking = true
  try {
    const { runs, overview, measured, held_seq } = box.shown
    const query = new URLSearchParams({ runs })
    if (overview) query.set("overview", "")
    if (measured) query.set("measured", "")
    if (held_seq !== null) query.set("since", held_seq)
    const answer = await fetch(new URL(`api/pulse?${query}`, document.baseURI))
    const { version, fresh } = await answer.json()
    if (!answer.ok || isPressed() || isDrawing() || isAway()) return
    if (version !== box.seen) { box.seen = version; box.changedAt = Date.now() }
    if (version === box.shown.version) news.heardAt = Date.now()
    if (box.shown.held_seq !== null) return held_seq === box.shown.held_seq ? showFresh(box, fresh ?? 0) : undefined
    // The page runs again for this version only once in three seconds, however long it takes.
    if (version !== box.shown.version && !(version === box.told && Date.now() < box.patience)) {
      box.told = version
      box.patience = Date.now() + 3000
      box.tell(version)
    }
  } catch { /* the server is away for a moment; the page itself says so */ } finally { box.isAsking = false }
}

function wait(box) {
  const every = pace() || box.shown.every_ms
  const idle = Date.now() - box.changedAt
  return idle < IDLE_MS ? every : Math.min(Math.max(every, SLOWEST_MS), every * (idle / IDLE_MS))
}

function follow(box) {
  clearTimeout(box.timer)
  box.timer = setTimeout(() => { if (box.isConnected) look(box).finally(() => follow(box)) }, wait(box))
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component
  const box = parentElement.querySelector(".now")
  const isFirst = !box.shown
  Object.assign(box, {
    shown: data, skew: data.server_now - Date.now() / 1000, tell: version => setTriggerValue("pulse", version),
  })
  box.changedAt ??= Date.now()
  box.hidden = !data.text
  box.querySelector(".text").textContent = data.text
  box.querySelector(".text").title = [data.text, data.detail].filter(Boolean).join(", ")
  box.classList.toggle("working", Boolean(data.active))
  box.classList.toggle("frozen", Boolean(data.frozen))
  box.querySelector(".detail").textContent = data.detail
  box.dataset.tone = data.tone
  drawPipeline(box.querySelector(".pipeline"), data.active)
  if (isFirst || data.held_seq === null) showFresh(box, 0)
  else box.querySelector(".fresh").hidden = false
  box.querySelector(".fresh").onclick = () => setTriggerValue("live", Date.now())
  const select = box.querySelector(".pace")
  select.value = String(pace() || data.every_ms)
  select.onchange = () => { sessionStorage.setItem(PACE, select.value); box.changedAt = Date.now(); follow(box) }
  // A person who comes back, or touches the page, is not kept waiting by what an idle page has slowed down to.
  document.onvisibilitychange = () => { box.changedAt = Date.now(); follow(box) }
  document.onpointerdown = () => {
    pressedAt = Date.now()
    if (Date.now() - box.changedAt > IDLE_MS) { box.changedAt = Date.now(); follow(box) }
  }
  document.onpointerup = document.onpointercancel = () => { pressedAt = 0 }
  tick(box)
  // Trap: this function runs again with new data without the returned one having been called.
  clearInterval(box.ticking)
  if (!data.frozen) box.ticking = setInterval(() => tick(box), 1000)
  follow(box)
  return () => { clearInterval(box.ticking); clearTimeout(box.timer) }
}
