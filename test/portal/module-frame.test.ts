import type { Frame, Page } from 'playwright-core'
import { expect } from 'vitest'
import { isLong } from '../support/long.ts'
import { axe } from '../support/portal/axe.ts'
import { asAdministrator } from '../support/portal/shared.ts'
import { passUntil, requestsDuring } from '../support/portal/traffic.ts'

/** The page of a module stays in its frame, whatever its scripts try: the tests run theirs in it, as a hostile page would. */

/** Where the module is installed. */
const test = asAdministrator.extend('installed', { scope: 'file' }, ({ api, seed: _seed }) => api)

/** What the browser says of what it has not let a page do. */
const refusals = [/^console error: /, /^answer 40[134] /, /^policy /, /^failed /, /^page error: /]

const isPage = ({ pathname }: URL): boolean => pathname === '/modules/hello'

async function frameOf(page: Page): Promise<Frame> {
  await page.frameLocator('iframe').getByRole('heading', { name: 'Hello, World!' }).waitFor()
  const frame = page.frames().find((each) => each !== page.mainFrame())
  if (frame === undefined) throw new Error('There is no frame.')
  return frame
}

/** Has the page in the frame send something to the portal; answers what it hears within a second, if anything. */
const say = (frame: Frame, message: object): Promise<any> =>
  frame.evaluate((message) => {
    const { parent, addEventListener, setTimeout }: any = globalThis
    parent.postMessage(message, '*')
    return new Promise((resolve) => {
      const hear = ({ data }: any) => data.platform !== 'surroundings' && resolve(data)
      addEventListener('message', hear, { once: true })
      setTimeout(() => resolve(undefined), 1000)
    })
  }, message)

test('the address of a module’s page leads to it, inside of the portal, and deeper addresses and queries as well', async ({
  installed,
  open,
}) => {
  await installed.admin
  const page = await open('/modules/hello?tab=one#part')
  const frame = await frameOf(page)
  expect(new URL(page.url()).pathname).toBe('/modules/hello')
  expect(frame.url()).toMatch(/\/modules\/hello\?tab=one/)
  await page.getByRole('heading', { level: 1, name: 'Hello World' }).waitFor()
  await page.getByText('Healthy').waitFor()
  await page.getByRole('link', { name: 'Details' }).click()
  await page.getByRole('dialog', { name: 'Hello World' }).waitFor()
})

test.runIf(isLong)('whoever is not signed in signs in first', async ({ installed, open }) => {
  await installed.admin
  const page = await open('/modules/hello', { as: 'nobody', allow: [/^answer 401 /] })
  await expect.poll(() => new URL(page.url()).pathname).toBe('/sign-in')
  expect(new URL(page.url()).searchParams.get('returnTo')).toBe('/?open=%2Fmodules%2Fhello')
})

test.runIf(isLong)('a session that has to be renewed is, before the frame is shown', async ({ installed, open }) => {
  await installed.admin
  const page = await open('/health', { allow: [/^answer 401 /] })
  await page.context().clearCookies({ name: 'plat_access' })
  await page.getByRole('link', { name: 'Hello World' }).click()
  await frameOf(page)
})

/** Each tries to get at what is not the module's, and answers what it has got. */
const attacks: Record<string, string> = {
  'reads the portal': 'parent.document.body.innerText',
  'reads the top': 'top.document.cookie',
  'changes the portal': 'parent.document.title = "mine"',
  'calls into the portal': 'parent.eval("1")',
  'reads cookies': 'document.cookie',
  'reads the storage': 'localStorage.length',
  'opens the database': 'indexedDB.open("x") && new Promise((yes, no) => setTimeout(no, 500))',
  'calls the API with the session': 'fetch("/api/v1/auth/me").then((it) => it.text())',
  'calls its own API without the bridge': 'fetch("/api/hello", { credentials: "include" }).then((it) => it.text())',
  'calls elsewhere': 'fetch("https://example.com/").then((it) => it.text())',
  'leads the portal away': '(top.location = "/modules/hello?mine", new Promise((yes, no) => setTimeout(no, 500)))',
  'opens a window': '(() => { const it = open("/dashboard"); if (!it) throw 1; return it })()',
  'runs a worker': 'new Worker("/modules/hello") && new Promise((yes, no) => setTimeout(no, 500))',
  'registers a service worker': 'navigator.serviceWorker.register("/modules/hello")',
  'loads a script of another': `new Promise((yes, no) => {
    const it = document.createElement("script"); it.src = "https://example.com/x.js"; it.onload = yes; it.onerror = no; document.body.append(it) })`,
  'asks for the place': 'new Promise((yes, no) => navigator.geolocation.getCurrentPosition(yes, no))',
}

test('a page gets at nothing that is not the module’s, whatever it tries', async ({ installed, open }) => {
  await installed.admin
  const page = await open('/modules/hello', { allow: [...refusals, /^elsewhere GET https:\/\/example\.com/] })
  const frame = await frameOf(page)
  for (const [name, script] of Object.entries(attacks)) {
    const outcome = await frame.evaluate(
      `(async () => { try { return { got: String(await (${script})) } } catch { return 'nothing' } })()`,
    )
    expect(outcome, name).toBe('nothing')
    expect(new URL(page.url()).pathname + new URL(page.url()).search, name).toBe('/modules/hello')
    expect(await page.title(), name).toMatch(/^Hello World/)
    expect(page.context().pages(), name).toHaveLength(1)
  }
})

const places = [
  ['elsewhere', 'https://example.com/'],
  ['to a page of the portal', '/dashboard'],
] as const

test.for(isLong ? places : places.slice(1))(
  'a page that leads its own frame %s shows nothing there',
  async ([, address], { installed, open }) => {
    await installed.admin
    const page = await open('/modules/hello', { allow: [...refusals, /^elsewhere /] })
    const frame = await frameOf(page)
    await frame.evaluate(`void setTimeout(() => { location = ${JSON.stringify(address)} })`)
    // The browser's own page for what it does not show; what that says differs between its makes.
    await expect.poll(() => frame.evaluate('location.href').catch(() => '')).toBe('chrome-error://chromewebdata/')
  },
)

test('the bridge hands on calls of the module’s own paths, as the user that is signed in', async ({
  installed,
  open,
}) => {
  await installed.admin
  const page = await open('/modules/hello', { allow: [/^answer 404 GET \/api\/hello\/none/] })
  const frame = await frameOf(page)
  const greeting = await say(frame, { platform: 'request', id: 1, method: 'GET', path: '/api/hello' })
  expect(greeting).toMatchObject({ platform: 'response', id: 1, status: 200 })
  expect(greeting.headers['content-type']).toMatch(/^application\/json/)
  expect(Object.keys(greeting.headers)).not.toContain('set-cookie')
  expect(JSON.parse(greeting.body)).toMatchObject({ moduleId: 'hello' })
  const none = await say(frame, { platform: 'request', id: 2, method: 'GET', path: '/api/hello/none' })
  expect(none).toMatchObject({ id: 2, status: 404 })
})

test('the bridge hands on no call of anybody else’s path', async ({ installed, open }) => {
  await installed.admin
  const page = await open('/modules/hello')
  const frame = await frameOf(page)
  const paths = [
    '/api/v1/users',
    '/api/hello/../v1/users',
    '/api/hello/%2e%2e/v1/users',
    '/api/hello2',
    '//example.com/',
  ]
  const sent = await requestsDuring(page, async () => {
    for (const path of [...paths, `${new URL(page.url()).origin}/api/v1/users`]) {
      expect(await say(frame, { platform: 'request', id: 1, method: 'GET', path })).toMatchObject({
        error: 'not_allowed',
      })
    }
  })
  expect(
    sent.filter((line) => !line.endsWith('/api/v1/portal/summary') && !line.endsWith('/api/v1/modules/hello')),
  ).toEqual([])
})

test('the bridge hears the page in the frame, and nobody else', async ({ installed, open }) => {
  await installed.admin
  const page = await open('/modules/hello', { allow: refusals })
  const frame = await frameOf(page)
  const call = { platform: 'request', id: 1, method: 'GET', path: '/api/hello' }
  const sent = await requestsDuring(page, async () => {
    await page.evaluate((call) => (globalThis as any).postMessage(call, '*'), call)
    await frame.evaluate((call) => {
      const { document, setTimeout }: any = globalThis
      const inner = document.createElement('iframe')
      document.body.append(inner)
      inner.srcdoc = `<script>top.postMessage(${JSON.stringify(call)}, '*')</script>`
      return new Promise((resolve) => setTimeout(resolve, 1000))
    }, call)
  })
  expect(sent.filter((line) => line.endsWith('/api/hello'))).toEqual([])
  expect(await say(frame, call)).toMatchObject({ status: 200 })
})

test.runIf(isLong)(
  'a page opens another page of its module, and its address is the browser’s',
  async ({ installed, open }) => {
    await installed.admin
    const page = await open('/modules/hello', { allow: [/^answer 404 (HEAD|GET) \/modules\/hello\/below/] })
    await say(await frameOf(page), { platform: 'open', path: '/settings/users' })
    expect(new URL(page.url()).pathname).toBe('/modules/hello')
    await (await frameOf(page)).evaluate('parent.postMessage({ platform: "open", path: "/modules/hello?page=2" }, "*")')
    await expect.poll(() => page.url()).toMatch(/\/modules\/hello\?page=2$/)
    await expect.poll(async () => (await frameOf(page)).url()).toMatch(/\?page=2$/)
    await page.goBack()
    await expect.poll(async () => (await frameOf(page)).url()).toMatch(/\/modules\/hello$/)
  },
)

test.runIf(isLong)('a page learns how the portal looks and speaks', async ({ installed, open }) => {
  await installed.admin
  const page = await open('/modules/hello', { theme: 'dark' })
  const frame = await frameOf(page)
  const told = await frame.evaluate(() => {
    const { parent, addEventListener }: any = globalThis
    const heard = new Promise((resolve) =>
      addEventListener('message', ({ data }: any) => resolve(data), { once: true }),
    )
    parent.postMessage({ platform: 'hello' }, '*')
    return heard
  })
  expect(told).toEqual({ platform: 'surroundings', theme: 'dark', locale: 'en', timeZone: 'Europe/Berlin' })
  await axe(page)
})

test.runIf(isLong)(
  'where the module does not answer its page says so, with the trace, and tries again',
  async ({ installed, open }) => {
    await installed.admin
    const page = await open('/health', { allow: [/^answer 503 (HEAD|GET) \/modules\/hello/] })
    await page.clock.install()
    const traceId = 'a'.repeat(32)
    const body = JSON.stringify({ error: 'module_unavailable', message: 'The module does not run.', traceId })
    // In place of a module that is away: by itself none is for long.
    await page.route(isPage, (route) => route.fulfill({ status: 503, contentType: 'application/json', body }))
    await page.getByRole('link', { name: 'Hello World' }).click()
    await passUntil(page, () => page.getByText('The module does not run.').isVisible())
    await page.getByText(traceId).waitFor()
    await page.unroute(isPage)
    await page.getByRole('button', { name: 'Try again' }).click()
    await frameOf(page)
  },
)
