// From page to page: the menu on a narrow screen, and one step back for each step forth: a page, a tab, a view of a page.

// On a phone the menu lies over the page: it closes once a page is chosen. Streamlit does so only where the browser says that it
// is a phone's.
const NARROW = "(max-width: 768px)"

function close(event) {
  if (!matchMedia(NARROW).matches || !event.target.closest?.('[data-testid="stSidebarNavLink"]')) return
  setTimeout(() => document.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click())
}

// Trap: where a page leads to another, Streamlit makes two entries in the browser's history: the page that is left with
// the other's parameters, then the other. One step back then leads to, say, the list of runs without its filter.
function goInOneStep() {
  const push = history.pushState
  let halfway = null  // the address after the first of the two, until a person does something again
  history.pushState = function (state, unused, address) {
    const from = location.pathname, wanted = new URL(address ?? "", location.href)
    if (halfway === location.href && wanted.pathname !== from && wanted.search === location.search) {
      halfway = null
      return history.replaceState(state, unused, address)
    }
    halfway = wanted.pathname === from ? wanted.href : null
    return push.apply(this, arguments)
  }
  for (const act of ["pointerdown", "keydown"]) addEventListener(act, () => { halfway = null }, true)
}

// A tab that a person opens is a step (Streamlit makes it one), and a step back opens it as a click does. Trap: Streamlit
// would draw the whole page anew, and what the browser says meanwhile, with the tab that it still shows, opens that again.
const TABS = '.st-key-kernel_tabs [role="tab"]'

function keepTabs() {
  const push = history.pushState
  let left = "", isOwn = false  // the tab that a person leaves, and whether the tab is opened by a person
  const act = () => {
    isOwn = true
    left = tabs().find(tab => tab.ariaSelected === "true")?.innerText.trim() ?? ""
  }
  for (const name of ["pointerdown", "keydown"]) addEventListener(name, act, true)
  history.pushState = function (state, unused, address) {
    if (!isOtherTab(new URL(address ?? "", location.href))) return push.apply(this, arguments)
    if (!isOwn) return history.replaceState(state, unused, address)
    const here = new URL(location.href)
    if (left && !here.searchParams.has("tab")) {
      here.searchParams.set("tab", left)
      history.replaceState(history.state, "", here)
    }
    return push.apply(this, arguments)
  }
  let shown = location.href
  addEventListener("popstate", event => {
    isOwn = false
    const wanted = new URL(location.href).searchParams.get("tab")
    const tab = isOtherTab(new URL(shown)) && tabs().find(tab => tab.innerText.trim() === wanted)
    shown = location.href
    if (!tab || tab.ariaSelected === "true" || tab.ariaDisabled === "true") return
    event.stopImmediatePropagation()
    tab.click()
  }, true)
  for (const name of ["pushState", "replaceState"]) {
    const write = history[name]
    history[name] = function () {
      write.apply(this, arguments)
      shown = location.href
    }
  }
}

const tabs = () => [...document.querySelectorAll(TABS)]

function isOtherTab(other) {
  if (!other.searchParams.has("tab")) return false  // its page is being left
  const [here, there] = [location.href, other.href].map(address => new URL(address))
  for (const url of [here, there]) url.searchParams.delete("tab")
  return here.href === there.href
}

// Another view of a page is a tab for whoever looks at it, but Streamlit writes it over the address before. What a page chooses by itself stays no step.
const VIEWS = ["show", "show_suite", "network_view"]

function keepViews() {
  const replace = history.replaceState
  let isChosen = false  // a person has just chosen among buttons that stand in a row
  addEventListener("click", event => { isChosen = Boolean(event.target.closest?.('[data-testid="stButtonGroup"]')) }, true)
  history.replaceState = function (state, unused, address) {
    if (!isChosen || !isOtherView(new URL(address ?? "", location.href))) return replace.apply(this, arguments)
    isChosen = false
    return history.pushState(state, unused, address)
  }
}

function isOtherView(wanted) {
  const here = new URL(location.href).searchParams, there = wanted.searchParams
  return wanted.pathname === location.pathname && VIEWS.some(view => here.get(view) !== there.get(view))
}

// Trap: a field says what was typed only some moments after it was left. Where it was left by a click on a link, it does so
// after the link and with the page before, which then opens again. So the link waits for the field.
const FIELD_MS = 250

function letFieldsSpeakFirst() {
  let leftAt = -FIELD_MS
  addEventListener("focusout", event => {
    if (event.target.matches?.("input, textarea")) leftAt = performance.now()
  }, true)
  addEventListener("click", event => {
    const link = event.target.closest?.("a[href]"), isPlain = !event.button && !event.ctrlKey && !event.metaKey && !event.shiftKey
    if (!link || !event.isTrusted || !isPlain || performance.now() - leftAt > FIELD_MS) return
    if (link.target === "_blank" || link.origin !== location.origin) return
    event.preventDefault()
    event.stopImmediatePropagation()
    setTimeout(() => {
      const drawn = link.isConnected ? link : [...document.links].find(other => other.href === link.href)
      drawn?.click()
    }, FIELD_MS)
  }, true)
}

// For the keyboard: from the top of a run's page straight to what steers it, where there is such. Trap: a style rule that
// asks the whole page for it (`:has`) costs a run of a thousand kernels most of the time that its page takes to be drawn.
function offerControls() {
  const way = document.createElement("button")
  way.className = "tilewright-way"
  way.textContent = "To the controls"
  // Trap: where it is narrow Streamlit keeps a hidden twin of a button's word before it.
  way.onclick = () => [...document.querySelectorAll(".st-key-steer_first button")].find(one => one.getClientRects().length)?.focus()
  const controls = document.getElementsByClassName("st-key-steer_first")
  // They are gone for a moment when they are drawn anew, and somebody may be on the way to them.
  let gone
  const look = () => {
    clearTimeout(gone)
    if (controls[0]?.querySelector("button")) way.hidden = false
    else gone = setTimeout(() => { way.hidden = true }, 1000)
  }
  way.hidden = true
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true })
  look()
  document.body.prepend(way)
}

export default function () {
  if (window.tilewrightMenu) return
  window.tilewrightMenu = true
  document.addEventListener("click", close)
  goInOneStep()
  letFieldsSpeakFirst()
  keepViews()
  keepTabs()
  mindManners()
  keepUnsent()
  offerControls()
}
