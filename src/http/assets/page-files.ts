// The style sheet and the logo of the pages without script. They look like the web application in admin/, and do without its build.
import { createAsset, type Asset } from './assets.js'

const STYLE = `:root {
  color-scheme: light dark;
  --page: #f6f7f9;
  --card: #fff;
  --line: #dfe3e8;
  --input-line: #838c97;
  --text: #1a1d21;
  --accent: #3b5bdb;
  --on-accent: #fff;
  --error: #b42318;
  background: var(--page);
  color: var(--text);
  font: 16px/1.5 Inter, system-ui, sans-serif;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #111418;
    --card: #1b1f24;
    --line: #333a43;
    --input-line: #77818d;
    --text: #e7eaee;
    --accent: #91a7ff;
    --on-accent: #10131a;
    --error: #ff9b91;
  }
}
* {
  box-sizing: border-box;
}
body {
  display: flex;
  flex-direction: column;
  align-items: center;
  min-height: 100vh;
  margin: 0;
  padding: 8vh 16px 32px;
}
.brand {
  display: flex;
  align-items: center;
  gap: 10px;
  margin: 0 0 20px;
  font-size: 1.35rem;
  font-weight: 650;
}
main {
  width: 100%;
  max-width: 26rem;
  padding: 24px;
  border: 1px solid var(--line);
  border-radius: 10px;
  background: var(--card);
  overflow-wrap: anywhere;
}
h1 {
  margin: 0 0 16px;
  font-size: 1.35rem;
  font-weight: 650;
  line-height: 1.3;
}
p {
  margin: 0 0 16px;
}
label {
  display: block;
  margin: 0 0 16px;
  font-weight: 600;
}
input {
  display: block;
  width: 100%;
  height: 44px;
  margin-top: 6px;
  padding: 0 12px;
  border: 1px solid var(--input-line);
  border-radius: 10px;
  background: var(--card);
  color: var(--text);
  font: inherit;
  font-weight: 400;
}
[aria-invalid] {
  border: 2px solid var(--error);
}
button,
.button {
  display: block;
  width: 100%;
  min-height: 44px;
  padding: 10px 16px;
  border: 0;
  border-radius: 10px;
  background: var(--accent);
  color: var(--on-accent);
  font: inherit;
  font-weight: 600;
  line-height: 24px;
  text-align: center;
  text-decoration: none;
  cursor: pointer;
}
:focus-visible {
  outline: 2px solid var(--accent);
  outline-offset: 2px;
}
.error {
  color: var(--error);
}
.field-error {
  margin: -10px 0 16px;
}
.button + p {
  margin-top: 24px;
}
pre {
  margin: 0;
  padding: 12px;
  border-radius: 10px;
  background: var(--page);
  font-size: 0.8rem;
  white-space: pre-wrap;
}
`

const LOGO = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#3b5bdb"/><path d="M8 9l8 15 8-15" fill="none" stroke="#fff" stroke-width="3.4" stroke-linecap="round" stroke-linejoin="round"/><path d="M13 9l3 5.6L19 9" fill="none" stroke="#fff" stroke-opacity=".55" stroke-width="2.6" stroke-linecap="round" stroke-linejoin="round"/></svg>
`

const style = createAsset('verso-page.css', STYLE)
const logo = createAsset('verso-logo.svg', LOGO)

export const [STYLE_NAME] = style
export const [LOGO_NAME] = logo

/** The files by their names below `/assets`. All begin with `verso-`, so that a reverse proxy can tell them from files of other pages. */
export const PAGE_FILES: ReadonlyMap<string, Asset> = new Map([style, logo])
