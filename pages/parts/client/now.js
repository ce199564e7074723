// What the engine does this second: the pipeline with its active step lit, and a clock that ticks in the browser.
// Also asks the server whether anything is new; only then does the page run again, so an idle page costs nothing.
const STATIONS = ["synthesise", "optimise", "diagnose", "repair", "compile", "check", "time", "profile"]

function clock(seconds) {
  const s = Math.max(0, Math.floor(seconds))
  const pad = n => String(n).padStart(2, "0")
  return s < 3600 ? `${Math.floor(s / 60)}:${pad(s % 60)}` : `${Math.floor(s / 3600)}:${pad(Math.floor(s / 60) % 60)}:${pad(s % 60)}`
}

function drawPipeline(list, active) {
  list.hidden = !active
  if (list.dataset.active === active && list.childElementCount) return
  list.dataset.active = active
  list.replaceChildren(...STATIONS.map(name => {
    const item = document.createElement("li")
    item.textContent = name
    if (name === active) { item.className = "active"; item.setAttribute("aria-current", "step") }
    return item
  }))
}

// Trap: a rerun of the page while a click in its open dialog is on its way can swallow that click.
const isBusy = box => box.isAsking || document.hidden || document.querySelector('[role="dialog"]')

async function look(box) {
  if (isBusy(box)) return
  box.isAsking = true
  try {
    const query = `runs=${encodeURIComponent(box.shown.runs)}${box.shown.overview ? "&overview" : ""}`
    const answer = await fetch(new URL(`api/pulse?${query}`, document.baseURI))
    const { version } = await answer.json()
    // The page runs again for this version only once in three seconds, however long it takes.
    if (answer.ok && version !== box.shown.version && !(version === box.told && Date.now() < box.patience)) {
      box.told = version
      box.patience = Date.now() + 3000
      box.tell(version)
    }
  } catch { /* the server is away for a moment; the page itself says so */ } finally { box.isAsking = false }
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component
  const box = parentElement.querySelector(".now")
  Object.assign(box, { shown: data, tell: version => setTriggerValue("pulse", version) })
  const skew = data.server_now - Date.now() / 1000
  box.hidden = !data.text
  parentElement.querySelector(".text").textContent = data.text
  parentElement.querySelector(".detail").textContent = data.detail
  box.dataset.tone = data.tone
  drawPipeline(parentElement.querySelector(".pipeline"), data.active)
  const tick = () => {
    parentElement.querySelector(".clock").textContent =
      data.since ? clock(Date.now() / 1000 + skew - data.since) : ""
  }
  tick()
  // Trap: this function runs again with new data without the returned one having been called.
  box.timers?.forEach(clearInterval)
  box.timers = [setInterval(tick, 1000), setInterval(() => look(box), data.every_ms)]
  return () => box.timers.forEach(clearInterval)
}
