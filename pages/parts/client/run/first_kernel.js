// The stages up to the first measured kernel; the clock of the one in progress ticks here.
const SIGNS = { done: "✓", active: "●", waiting: "○" }
const READ = { done: "done", active: "in progress", waiting: "not begun" }

export default function ({ data, parentElement }) {
  const list = parentElement.querySelector(".stages")
  const skew = data.server_now - Date.now() / 1000
  list.replaceChildren(...data.stages.map(stage => {
    const item = document.createElement("li")
    item.className = stage.state
    for (const [name, text] of [["sign", SIGNS[stage.state]], ["name", stage.name], ["about", stage.about], ["time", stage.time]]) {
      const node = document.createElement("span")
      node.className = name
      node.textContent = text
      if (name === "sign") { node.setAttribute("role", "img"); node.setAttribute("aria-label", READ[stage.state]) }
      item.append(node)
    }
    return item
  }))
  const clock = list.querySelector(".active .time")
  const tick = () => { if (clock && data.since) clock.textContent = `${Math.max(0, Math.floor(Date.now() / 1000 + skew - data.since))} s` }
  tick()
  clearInterval(list.timer)
  list.timer = setInterval(tick, 1000)
  return () => clearInterval(list.timer)
}
