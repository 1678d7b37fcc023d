/**
 * Returns the page of the navigation entry. Its script is inline, because the portal shows the page in a sandbox
 * without a session. The script sends API requests through the portal (docs/modules.md, "The page of a module"). The
 * values come from this module's code, so they need no escaping.
 */
export const page = (greeting: string, version: string): string => `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Hello World</title>
    <link rel="stylesheet" href="/module-page.css">
  </head>
  <body>
    <main>
      <h1>${greeting}</h1>
      <p>This page comes from the module <code>hello</code>, version ${version}.</p>
      <button id="greet" type="button" class="primary">Greet</button>
      <p id="greeting-text" role="status"></p>
    </main>
    <script>${script}</script>
  </body>
</html>
`

const script = `
      const pending = new Map()
      const preferences = { locale: 'en', timeZone: 'UTC' }

      let lastId = 0

      function request(path) {
        const id = ++lastId
        parent.postMessage({ platform: 'request', id, method: 'GET', path }, '*')
        return new Promise((resolve) => pending.set(id, resolve))
      }

      addEventListener('message', ({ source, data }) => {
        if (source !== parent) return
        if (data.platform === 'surroundings') {
          Object.assign(preferences, data)
          document.documentElement.style.colorScheme = data.theme
        }
        if (data.platform === 'response') {
          pending.get(data.id)?.(data)
          pending.delete(data.id)
        }
      })

      document.getElementById('greet').addEventListener('click', async () => {
        const { status, body, error } = await request('/api/hello')
        document.getElementById('greeting-text').textContent = status === 200 ? describe(JSON.parse(body)) : 'No greeting: ' + (error ?? status)
      })

      function describe({ message, timestamp }) {
        const { locale, timeZone } = preferences
        return message + ' It is ' + new Date(timestamp).toLocaleTimeString(locale, { timeZone }) + ' where you are.'
      }

      parent.postMessage({ platform: 'hello' }, '*')
    `
