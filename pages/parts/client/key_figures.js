// Key figures as a definition list; the elapsed time ticks here.
function span(seconds) {
  const s = Math.max(0, Math.floor(seconds)), pad = n => String(n).padStart(2, "0")
  return s < 3600 ? `${Math.floor(s / 60)}:${pad(s % 60)}` : `${Math.floor(s / 3600)}:${pad(Math.floor(s / 60) % 60)}:${pad(s % 60)}`
}

function figure(label, value, note, second) {
  const box = document.createElement("div")
  for (const [tag, className, text] of [["dt", "", label], ["dd", "value", value], ["dd", "note", note], ["dd", "second", second]]) {
    if (!text) continue
    const node = document.createElement(tag)
    node.className = className
    node.textContent = text
    box.append(node)
  }
  return box
}

export default function ({ data, parentElement }) {
  const list = parentElement.querySelector(".figures")
  const elapsed = figure("Elapsed", "0:00", "")
  list.replaceChildren(...data.items.map(item => figure(item.label, item.value, item.note, item.second)), elapsed)
  list.firstElementChild.className = `first ${data.items[0].tone}`
  const skew = data.server_now - Date.now() / 1000
  const tick = () => {
    const now = data.clock.until ?? Date.now() / 1000 + skew
    elapsed.querySelector(".value").textContent = span(now - data.clock.since)
  }
  tick()
  clearInterval(list.timer)
  list.timer = setInterval(tick, 1000)
  return () => clearInterval(list.timer)
}
