import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { axe } from '../support/portal/axe.ts'
import { tabStops } from '../support/portal/keyboard.ts'
import { reachingOut } from '../support/portal/layout.ts'
import { faultsOf, newContext } from '../support/portal/open.ts'
import { livePayloads } from '../support/portal/payloads.ts'
import { test as base } from '../support/portal/test.ts'
import { fillEveryTextField } from '../support/portal/text-fields.ts'
import { requestsDuring, scriptsDuring } from '../support/portal/traffic.ts'
import { setVisible } from '../support/portal/visibility.ts'
import { type Reply, type Server, startServer } from '../support/http-server.ts'

/** What watches the pages of the portal sees what it is there for: shown on pages that do what the portal must not do. */

const policy = "default-src 'none'; script-src 'self'; connect-src 'self'; require-trusted-types-for 'script'"

/** Scripts of pages that have nothing else, by path. */
const scripts: Record<string, string> = {
  '/dialog': 'alert("hello")',
  '/throws': 'null.x',
  '/rejects': 'Promise.reject(new Error("nobody looks"))',
  '/console': 'console.error("something")',
  '/elsewhere': 'new Image().src = "https://example.com/pixel"',
  '/policy': 'try { document.body.innerHTML = "<b>x</b>" } catch {}',
  '/broken': 'fetch("/failing").catch(() => {})',
  '/unfit': 'fetch("/unknown").catch(() => {})',
  '/window': 'window.open("/calm")',
  '/hostile': '__xss = 1',
  '/calm': 'document.title = "calm"; console.warn("so what")',
  '/polling': 'setInterval(() => document.visibilityState === "visible" && fetch("/calm.js"), 5000)',
}

/** Takes a text for markup wherever it can. */
const trusting = (text: string): string => `<a href="${text}">link</a><div>${text}</div><input value="${text}">
  <input value='${text}'><textarea>${text}</textarea><!--${text}--><script>'${text}'</script>`

const html = (body: string, headers: Record<string, string>) => ({
  status: 200,
  headers: { 'content-type': 'text/html', ...headers },
  body: `<!doctype html><html lang="en"><title>Page</title><main><h1>Page</h1>${body}</main>`,
})

function answer({ pathname, searchParams }: URL, scripts: Record<string, string>): Reply {
  if (pathname === '/trusting') return html(trusting(searchParams.get('text') ?? ''), {})
  if (pathname in scripts) return html(`<script src="${pathname}.js"></script>`, { 'content-security-policy': policy })
  const script = scripts[pathname.replace('.js', '')]
  if (script !== undefined) return { status: 200, headers: { 'content-type': 'text/javascript' }, body: script }
  return { status: pathname === '/failing' ? 500 : 404 }
}

const test = base
  .extend('pages', { scope: 'file' }, scripts)
  .extend('server', { scope: 'file' }, async ({ pages }, { onCleanup }): Promise<Server> => {
    const server = await startServer(({ url }) => answer(url, pages))
    onCleanup(() => server[Symbol.asyncDispose]())
    return server
  })
  .extend('origin', { scope: 'file' }, ({ server }) => server.url)
  .extend('bare', async ({ browser, origin, lacking, skip }, { onCleanup }): Promise<Page> => {
    if (!browser) return skip(lacking)
    const context = await newContext(browser, origin, { as: 'nobody' })
    onCleanup(() => context.close())
    return context.newPage()
  })

test.for([
  ['/dialog', /^dialog alert: hello$/],
  ['/throws', /^page error: TypeError/],
  ['/rejects', /^page error: Error: nobody looks/],
  ['/console', /^console error: something \(\/console\.js\)$/],
  ['/elsewhere', /^elsewhere GET https:\/\/example\.com\/pixel$/],
  ['/policy', /^policy require-trusted-types-for refuses trusted-types-sink/],
  ['/broken', /^answer 500 GET \/failing$/],
  ['/unfit', /^answer 404 GET \/unknown$/],
  ['/window', /^window opened/],
  ['/hostile', /^script of a text ran: 1$/],
] as const)('a page is not quiet that does as %s does, unless its test allows it', async ([path, fault], { bare }) => {
  await bare.goto(path)
  await expect.poll(() => faultsOf(bare).list()).toContainEqual(expect.stringMatching(fault))
  expect(() => faultsOf(bare).expectNone()).toThrow('not quiet')
  faultsOf(bare).allow(/./)
  const before = faultsOf(bare).list().length
  await bare.reload()
  expect(faultsOf(bare).list()).toHaveLength(before)
})

test('a page is quiet that does nothing of that', async ({ open }) => {
  const page = await open('/calm', { as: 'nobody' })
  await expect.poll(() => page.title()).toBe('calm')
  expect(faultsOf(page).list()).toEqual([])
})

/** Puts elements into a page as its own script would, whatever its policy says about markup. */
const append = (page: Page, tag: string, attributes: Record<string, string> = {}) =>
  page.evaluate(
    ([tag, attributes]) => {
      const { document }: any = globalThis
      const element = document.createElement(tag)
      for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
      document.querySelector('main').append(element)
    },
    [tag, attributes] as const,
  )

test('axe finds what is grave, under the policy of the page', async ({ bare }) => {
  await bare.goto('/calm')
  await axe(bare)
  await append(bare, 'input')
  await expect(axe(bare)).rejects.toThrow(/^critical label: .*\n {2}input:/m)
})

test('what makes a page scroll sideways is named', async ({ bare }) => {
  await bare.goto('/calm')
  expect(await reachingOut(bare)).toEqual([])
  await append(bare, 'canvas', { width: '2000', class: 'wide' })
  expect(await reachingOut(bare)).toEqual([expect.stringContaining('pixels wide'), 'canvas.wide'])
})

test('the stops of the keyboard are listed in order, and whether they are seen', async ({ bare }) => {
  await bare.goto('/calm')
  expect(await tabStops(bare)).toEqual([])
  await append(bare, 'button', { 'aria-label': 'Seen' })
  await append(bare, 'button', { 'aria-label': 'Unseen', class: 'unseen' })
  await bare.locator('.unseen').evaluate((element: any) => (element.style.outline = 'none'))
  expect(await tabStops(bare)).toEqual([
    { what: 'button Seen', isSeen: true },
    { what: 'button Unseen', isSeen: false },
  ])
})

test('every visible field that takes a text is filled, and no other', async ({ bare }) => {
  await bare.goto('/calm')
  for (const type of ['text', 'search', 'email', 'url', 'password', 'checkbox', 'hidden', 'number']) {
    await append(bare, 'input', { type })
  }
  await append(bare, 'input', { role: 'combobox' })
  await append(bare, 'textarea')
  await append(bare, 'div', { contenteditable: 'plaintext-only' })
  for (const state of ['disabled', 'readonly', 'hidden']) await append(bare, 'input', { [state]: '' })
  expect(await fillEveryTextField(bare, '<b>')).toBe(8)
  expect(await bare.locator('[contenteditable]').textContent()).toBe('<b>')
  const values = await bare.locator('input, textarea').evaluateAll((all: any[]) => all.map(({ value }) => value))
  expect(values.filter((value) => value === '<b>')).toHaveLength(7)
})

test.for(livePayloads)('a hostile text runs in a page that trusts texts: %s', async ([, text], { bare }) => {
  await bare.goto(`/trusting?text=${encodeURIComponent(text)}`)
  await bare
    .locator('a')
    .first()
    .evaluate((link: any) => link.click())
  await expect.poll(() => faultsOf(bare).list()).toContainEqual(expect.stringMatching(/^dialog/))
})

test('what a page asks for and loads is counted, by a clock that the test moves and only while the tab is visible', async ({
  bare,
}) => {
  await bare.clock.install()
  const loaded = await scriptsDuring(bare, () => bare.goto('/polling'))
  expect(loaded).toEqual([{ path: '/polling.js', gzipBytes: expect.any(Number) }])
  const passing = () => requestsDuring(bare, () => bare.clock.runFor(11_000))
  expect(await passing()).toEqual(['GET /calm.js', 'GET /calm.js'])
  await setVisible(bare, false)
  expect(await passing()).toEqual([])
  await setVisible(bare, true)
  expect(await passing()).toHaveLength(2)
})
