import type { Frame, Page } from 'playwright-core'
import { expect } from 'vitest'
import { isLong } from '../support/long.ts'
import { button, dialog, heading, link } from '../support/portal/locators.ts'
import type { View } from '../support/portal/open.ts'
import { advanceUntil, failRequests, requestsDuring } from '../support/portal/requests.ts'
import { type Open, testAsAdministrator } from '../support/portal/test.ts'

/** A module's page is isolated in its frame. The tests run scripts in it, as a hostile module would. */
const test = testAsAdministrator.extend('installed', { scope: 'file' }, async ({ api, seed: _seeded }) => api.admin)

const blockedErrors = [/^console error: /, /^response 40[134] /, /^policy /, /^failed /, /^page error: /]

async function frameOf(page: Page): Promise<Frame> {
  await page.frameLocator('iframe').getByRole('heading', { name: 'Hello, World!' }).waitFor()
  const frame = page.frames().find((each) => each !== page.mainFrame())
  if (frame === undefined) throw new Error('The page has no frame.')
  return frame
}

async function openModule(open: Open, view?: View): Promise<{ page: Page; frame: Frame }> {
  const page = await open('/modules/hello', view)
  return { page, frame: await frameOf(page) }
}

const post = (frame: Frame, message: object): Promise<any> =>
  frame.evaluate((message) => {
    const { parent, addEventListener }: any = globalThis
    return new Promise((resolve) => {
      addEventListener('message', ({ data }: any) => data.platform === 'response' && resolve(data))
      parent.postMessage(message, '*')
    })
  }, message)

const request = (path: string, id = 1) => ({ platform: 'request', id, method: 'GET', path })

test.runIf(isLong)('shows the page of a module with its query', async ({ installed: _installed, open }) => {
  const page = await open('/modules/hello?tab=one#part')
  const frame = await frameOf(page)
  expect(new URL(page.url()).pathname).toBe('/modules/hello')
  expect(frame.url()).toMatch(/\/modules\/hello\?tab=one/)
  await heading(page, 'Hello World').waitFor()
  await page.getByText('Healthy').waitFor()
  await link(page, 'Details').click()
  await dialog(page, 'Hello World').waitFor()
})

test.runIf(isLong)(
  'keeps path, last slash and fragment of a module page as they were sent',
  async ({ installed: _installed, open }) => {
    const page = await open('/health')
    // The reference module has one page only.
    await page.route(/\/modules\/hello\//, (route) => {
      const isPortal = route.request().isNavigationRequest() && route.request().frame() === page.mainFrame()
      return isPortal ? route.fallback() : route.fulfill({ contentType: 'text/html', body: '<h1>Hello, World!</h1>' })
    })
    for (const path of ['a%20b', '%C3%A4/', 'a%2Fb%3Fc/d%25/?x=%2F', "a;b=c,d+e@f:g!&'()*/"]) {
      const address = `/modules/hello/${path}#part%20one`
      await page.goto(address)
      const frame = await frameOf(page)
      expect([page.url(), frame.url()].map((url) => url.replace(/^https?:\/\/[^/]+/, ''))).toEqual([address, address])
    }
  },
)

test.runIf(isLong)('requires a sign-in, and renews an expired session', async ({ installed: _installed, open }) => {
  const signedOut = await open('/modules/hello', { as: 'anonymous', allow: [/^response 401 /] })
  await expect.poll(() => new URL(signedOut.url()).pathname).toBe('/sign-in')
  expect(new URL(signedOut.url()).searchParams.get('returnTo')).toBe('/?open=%2Fmodules%2Fhello')
  const page = await open('/health', { allow: [/^response 401 /] })
  await page.context().clearCookies({ name: 'plat_access' })
  await link(page, 'Hello World').click()
  await frameOf(page)
})

const neverSettles = 'new Promise((yes, no) => setTimeout(no, 500))'

const attacks: Record<string, string> = {
  'read the portal': 'parent.document.body.innerText',
  'read the top window': 'top.document.cookie',
  'change the portal': 'parent.document.title = "mine"',
  'run code in the portal': 'parent.eval("1")',
  'read cookies': 'document.cookie',
  'read storage': 'localStorage.length',
  'open a database': `indexedDB.open("x") && ${neverSettles}`,
  'call the API with the session': 'fetch("/api/v1/auth/me").then((it) => it.text())',
  'call its API without the bridge': 'fetch("/api/hello", { credentials: "include" }).then((it) => it.text())',
  'call another origin': 'fetch("https://example.com/").then((it) => it.text())',
  'navigate the portal': `(top.location = "/modules/hello?mine", ${neverSettles})`,
  'open a window': '(() => { const it = open("/dashboard"); if (!it) throw 1; return it })()',
  'run a worker': `new Worker("/modules/hello") && ${neverSettles}`,
  'register a service worker': 'navigator.serviceWorker.register("/modules/hello")',
  'load a foreign script': `new Promise((yes, no) => {
    const it = document.createElement("script"); it.src = "https://example.com/x.js"; it.onload = yes; it.onerror = no; document.body.append(it) })`,
  'read the location': 'new Promise((yes, no) => navigator.geolocation.getCurrentPosition(yes, no))',
}

test('blocks every attempt to leave the frame', async ({ installed: _installed, open }) => {
  const { page, frame } = await openModule(open, { allow: [...blockedErrors, /^external GET https:\/\/example\.com/] })
  for (const [name, script] of Object.entries(attacks)) {
    const outcome = await frame.evaluate(
      `(async () => { try { return { result: String(await (${script})) } } catch { return 'blocked' } })()`,
    )
    expect(outcome, name).toBe('blocked')
    expect(new URL(page.url()).pathname + new URL(page.url()).search, name).toBe('/modules/hello')
    expect(await page.title(), name).toMatch(/^Hello World/)
    expect(page.context().pages(), name).toHaveLength(1)
  }
})

test.runIf(isLong).for(['https://example.com/', '/dashboard'])(
  'the frame cannot navigate to %s',
  async (url, { installed: _installed, open }) => {
    const { frame } = await openModule(open, { allow: [...blockedErrors, /^external /] })
    await frame.evaluate(`void setTimeout(() => { location = ${JSON.stringify(url)} })`)
    await expect.poll(() => frame.evaluate('location.href').catch(() => '')).toBe('chrome-error://chromewebdata/')
  },
)

test('the page has the stylesheet, and the bridge forwards requests below the module’s paths only', async ({
  installed: _installed,
  open,
}) => {
  const { page, frame } = await openModule(open, { allow: [/^response 404 GET \/api\/hello\/none/] })
  expect(await frame.evaluate('getComputedStyle(document.querySelector(".primary")).backgroundColor')).toBe(
    'rgb(34, 87, 191)',
  )
  const greeting = await post(frame, request('/api/hello'))
  expect(greeting).toMatchObject({ platform: 'response', id: 1, status: 200 })
  expect(greeting.headers['content-type']).toMatch(/^application\/json/)
  expect(Object.keys(greeting.headers)).not.toContain('set-cookie')
  expect(JSON.parse(greeting.body)).toMatchObject({ moduleId: 'hello' })
  expect(await post(frame, request('/api/hello/none', 2))).toMatchObject({ id: 2, status: 404 })

  const { origin } = new URL(page.url())
  const paths = ['/api/v1/users', '/api/hello/%2e%2e/v1/users', '//example.com/', `${origin}/api/v1/users`]
  const requests = await requestsDuring(page, async () => {
    for (const path of paths) expect(await post(frame, request(path))).toMatchObject({ error: 'not_allowed' })
  })
  expect(requests.filter((line) => !/\/api\/v1\/(portal\/summary|modules\/hello)$/.test(line))).toEqual([])
})

test.runIf(isLong)('the bridge ignores messages of other frames', async ({ installed: _installed, open }) => {
  const { page, frame } = await openModule(open, { allow: blockedErrors })
  const message = request('/api/hello')
  const requests = await requestsDuring(page, async () => {
    await page.evaluate((message) => (globalThis as any).postMessage(message, '*'), message)
    await frame.evaluate((message) => {
      const { document, setTimeout }: any = globalThis
      const innerFrame = document.createElement('iframe')
      document.body.append(innerFrame)
      innerFrame.srcdoc = `<script>top.postMessage(${JSON.stringify(message)}, '*')</script>`
      return new Promise((resolve) => setTimeout(resolve, 1000))
    }, message)
  })
  expect(requests.filter((line) => line.endsWith('/api/hello'))).toEqual([])
  expect(await post(frame, message)).toMatchObject({ status: 200 })
})

test.runIf(isLong)('a page opens other pages of its module only', async ({ installed: _installed, open }) => {
  const { page, frame } = await openModule(open)
  const openPath = (path: string) =>
    frame.evaluate((path) => (globalThis as any).parent.postMessage({ platform: 'open', path }, '*'), path)
  await openPath('/settings/users')
  // The portal handles messages in order, so after this response it has handled the message of `openPath`.
  await post(frame, request('/api/hello'))
  expect(new URL(page.url()).pathname).toBe('/modules/hello')
  await openPath('/modules/hello?page=2')
  await expect.poll(() => page.url()).toMatch(/\/modules\/hello\?page=2$/)
  await expect.poll(async () => (await frameOf(page)).url()).toMatch(/\?page=2$/)
  await page.goBack()
  await expect.poll(async () => (await frameOf(page)).url()).toMatch(/\/modules\/hello$/)
})

test.runIf(isLong)('an unavailable module shows its trace id and is retried', async ({ installed: _seeded, open }) => {
  const page = await open('/health', { allow: [/^response 503 (HEAD|GET) \/modules\/hello/] })
  await page.clock.install()
  const recover = await failRequests(page, ({ pathname }) => pathname === '/modules/hello')
  await link(page, 'Hello World').click()
  await advanceUntil(page, () => page.getByText('Not now.').isVisible())
  await page.getByText('trace-4711').waitFor({ state: 'attached' })
  await recover()
  await button(page, 'Try again').click()
  await frameOf(page)
})
