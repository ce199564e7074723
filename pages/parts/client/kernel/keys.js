// Single keys stand for links and tabs that are on the page; while somebody types they do nothing. A key waits for what
// the key before it asked for: until that is drawn, links and tabs are those of the page before. It waits as well for a
// page that is still being drawn: the listener is there before the page is, and stays when a part of it is drawn anew.
const LONGEST_WAIT = 10_000
const state = (window.tilewrightKeys ??= { pending: [], awaited: { shown: null, until: 0 }, data: null })

const isHere = data => new URL(location).pathname.endsWith(`/${data.page}`)

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
  const leadsNowhere = !target || (target === link && link.ariaDisabled === "true") || target.ariaSelected === "true"
  return leadsNowhere ? null : target
}

function act() {
  const { pending, awaited, data } = state
  while (pending.length && data.shown && awaited.shown !== data.shown) {
    const target = find(pending.shift(), data.links)
    if (!target) continue
    Object.assign(awaited, { shown: data.shown, until: Date.now() + LONGEST_WAIT })
    target.click()
  }
}

function press(event) {
  const { pending, awaited, data } = state
  if (!isHere(data) || isTyping(event) || !(event.key in data.links || /^[1-9]$/.test(event.key))) return
  event.preventDefault()
  // What the key before asked for does not come any more. While the page is being drawn it still may.
  if (Date.now() > awaited.until && !window.tilewrightActs?.isRunning()) awaited.shown = null
  pending.push(event.key)
  act()
}

// Trap: while Streamlit draws the tabs anew it disables each until it has come, and a click on it would be lost. It is
// made up for as soon as the tab takes clicks, unless another one is clicked before that.
function clickOnceEnabled(tab) {
  state.wanted = tab
  const until = Date.now() + LONGEST_WAIT
  const look = () => {
    if (state.wanted !== tab || Date.now() > until) return
    if (tab.ariaDisabled === "true") setTimeout(look, 20)
    else tab.click()
  }
  look()
}

function clicked(event) {
  const tab = event.target.closest?.('.st-key-kernel_tabs [role="tab"]')
  if (!tab) return
  if (tab.ariaDisabled === "true") clickOnceEnabled(tab)
  else state.wanted = null
  bringUp(tab)
}

// On a phone the tabs stand at the foot of the screen: the one that is opened is brought to its head.
function bringUp(tab) {
  if (innerWidth <= 640) tab.closest(".st-key-kernel_tabs").scrollIntoView({ block: "start" })
}

export default function ({ data, parentElement }) {
  if (!state.data) {
    document.addEventListener("keydown", press)
    document.addEventListener("click", clicked)
  }
  if (data.shown) state.drawn = parentElement.querySelector("span")
  if (data.shown || !state.drawn?.isConnected) state.data = data
  act()
}
