// Single keys stand for links and tabs that are on the page; while somebody types they do nothing. A key waits for what
// the key before it asked for: until that is drawn, links and tabs are those of the page before.
const LONGEST_WAIT = 5000
const pending = []
let awaited = { shown: null, until: 0 }

function isTyping(event) {
  const target = event.composedPath()[0]
  const types = target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)
  return types || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('[role="dialog"]')
}

function find(key, links) {
  const main = document.querySelector('[data-testid="stMain"]')
  const tab = main.querySelectorAll('[role="tablist"]')[0]?.querySelectorAll('[role="tab"]')[Number(key) - 1]
  const link = links[key] ? [...main.querySelectorAll("a")].find(a => a.innerText.includes(links[key])) : null
  const target = tab ?? link
  const leadsNowhere = !target || target.ariaDisabled === "true" || target.ariaSelected === "true"
  return leadsNowhere ? null : target
}

function act({ links, shown }) {
  while (pending.length && awaited.shown !== shown) {
    const target = find(pending.shift(), links)
    if (!target) continue
    awaited = { shown, until: Date.now() + LONGEST_WAIT }
    target.click()
  }
}

function press(event, data) {
  if (isTyping(event) || !(event.key in data.links || /^[1-9]$/.test(event.key))) return
  event.preventDefault()
  if (awaited.shown === data.shown && Date.now() > awaited.until) {
    pending.length = 0
    awaited.shown = null
  }
  pending.push(event.key)
  act(data)
}

export default function ({ data, parentElement }) {
  const host = parentElement.querySelector("span")
  host.leave?.()
  const onKey = event => press(event, data)
  document.addEventListener("keydown", onKey)
  host.leave = () => document.removeEventListener("keydown", onKey)
  act(data)
  return () => host.leave()
}
