// On a phone the menu lies over the page: it closes once a page is chosen. Streamlit does so only where the browser says that it
// is a phone's.
const NARROW = "(max-width: 768px)"

function close(event) {
  if (!matchMedia(NARROW).matches || !event.target.closest?.('[data-testid="stSidebarNavLink"]')) return
  setTimeout(() => document.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click())
}

export default function () {
  if (window.tilewrightMenu) return
  window.tilewrightMenu = true
  document.addEventListener("click", close)
}
