// Single keys stand for links and tabs that are on the page; while somebody types they do nothing.
function isTyping(event) {
  const target = event.composedPath()[0]
  const types = target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)
  return types || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('[role="dialog"]')
}

function press(event, links) {
  if (isTyping(event)) return
  const main = document.querySelector('[data-testid="stMain"]')
  const tabs = main.querySelectorAll('[role="tablist"]')[0]?.querySelectorAll('[role="tab"]') ?? []
  const tab = /^[1-9]$/.test(event.key) ? tabs[Number(event.key) - 1] : null
  const link = links[event.key]
    ? [...main.querySelectorAll("a")].find(a => a.innerText.includes(links[event.key])) : null
  const target = tab ?? link
  if (!target || target.getAttribute("aria-disabled") === "true") return
  event.preventDefault()
  target.click()
}

export default function ({ data, parentElement }) {
  const host = parentElement.querySelector("span")
  host.leave?.()
  const onKey = event => press(event, data.links)
  document.addEventListener("keydown", onKey)
  host.leave = () => document.removeEventListener("keydown", onKey)
  return () => host.leave()
}
