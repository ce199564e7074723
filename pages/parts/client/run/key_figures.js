// Key figures as a definition list: state, best speed-up and headroom large, the rest small; the engine time ticks here.
// Rounded to seconds as reports and lists round them.
// Trap: a step that ends or is broken off has taken a little less than was ticked meanwhile. What was shown is not taken back,
// so the clock stands while the page hears of no change (a hidden tab asks for none), until it has heard that there was none.
function span(seconds) {
  const s = Math.max(0, Math.round(seconds)), pad = n => String(n).padStart(2, "0")
  return s < 3600 ? `${Math.floor(s / 60)}:${pad(s % 60)}` : `${Math.floor(s / 3600)}:${pad(Math.floor(s / 60) % 60)}:${pad(s % 60)}`
}

function figure(className, item, open) {
  const box = document.createElement("div")
  box.className = className
  if (item.title) box.title = item.title
  for (const [tag, name] of [["dt", "label"], ["dd", "value"], ["dd", "said"], ["dd", "note"], ["dd", "second"]]) {
    if (!item[name]) continue
    const node = document.createElement(tag)
    node.className = name === "second" && item.second_tone ? `second ${item.second_tone}` : name
    node.textContent = item[name]
    box.append(node)
  }
  if (item.flag) {
    const flag = document.createElement("a")
    flag.className = "flag"
    flag.textContent = item.flag
    flag.href = item.href
    flag.onclick = event => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return
      event.preventDefault()
      open(item.opens)
    }
    box.querySelector("dt").append(" ", flag)
  }
  return box
}

function gauge(item) {
  const box = figure("headroom", item)
  if (item.share === null) return box
  const track = document.createElement("span"), fill = document.createElement("span")
  track.className = "track"
  fill.className = "fill"
  fill.style.width = `${Math.round(100 * item.share)}%`
  track.append(fill)
  track.setAttribute("aria-hidden", "true")
  box.querySelector(".value").append(track)
  return box
}

export default function ({ data, parentElement, setTriggerValue }) {
  const list = parentElement.querySelector(".figures")
  const elapsed = figure("elapsed", { ...data.clock, value: "0:00" })
  list.replaceChildren(
    figure(`state ${data.state.tone}`, data.state), figure(`best ${data.best.tone} ${data.best.said ? "words" : ""}`, data.best, id => setTriggerValue("opened", id)),
    ...data.items.slice(0, 1).map(item => figure("", item)), gauge(data.headroom),
    ...data.items.slice(1).map(item => figure("", item)), elapsed)
  const skew = data.server_now - Date.now() / 1000
  const run = new URLSearchParams(location.search).get("run")
  if (list.run !== run || data.clock.until) list.most = 0
  list.run = run
  const drawnAt = Date.now()
  const isBehind = () => {
    const { isDeaf, heardAt } = window.tilewrightNews ?? {}
    if (isDeaf?.()) list.deafAt = Date.now()
    return Math.max(drawnAt, heardAt ?? 0) <= (list.deafAt ?? 0)
  }
  const count = () => {
    const now = data.clock.until ?? Date.now() / 1000 + skew
    list.most = Math.max(list.most, data.clock.spent_s + (data.clock.since ? now - data.clock.since : 0))
    elapsed.querySelector(".value").textContent = span(list.most)
  }
  count()
  clearInterval(list.timer)
  list.timer = setInterval(() => { if (!isBehind()) count() }, 1000)
  return () => clearInterval(list.timer)
}
