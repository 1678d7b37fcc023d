import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { docsPage } from '@platform/contract/docs'
import type { ApiDocument } from '@platform/contract/docs/document'
import { docsSecurityPolicy } from '@platform/contract/docs/policy'
import { mark, style } from '@platform/contract/docs/style'
import { routes } from '@platform/contract/index'
import document from '@platform/contract/openapi.json' with { type: 'json' }
import { expect, test } from 'vitest'
import { attribute, attributeNames, elements, findMisplaced } from './support/markup.ts'

const page = docsPage(document)
const hostileText = `</style></code><img src=x onerror="alert(1)"><script>'"&`

const declarations = (css: string): Map<string, string> =>
  new Map([...css.matchAll(/(--[\w-]+): ([^;]+);/g)].toReversed().map(([, name = '', value = '']) => [name, value]))

const poisonedDocument: ApiDocument = JSON.parse(
  JSON.stringify(document, (key, value: unknown) =>
    ['title', 'version', 'summary', 'description', 'example', 'operationId', 'source'].includes(key)
      ? hostileText
      : value,
  ),
)

test.for(routes)('the page describes and links $operationId', ({ operationId, endpoint }) => {
  expect(attribute(page, 'id')).toContain(operationId)
  expect(attribute(page, 'href')).toContain(`#${operationId}`)
  expect(page).toContain(`<code>${endpoint.path}</code>`)
})

test('the page loads no resources', () => {
  const links = attribute(page, 'href').filter((address) => !/^(#|data:|\/api\/v1\/openapi\.json$|\/$)/.test(address))
  expect(links).toEqual([])
  expect(elements(page).filter((name) => ['img', 'iframe', 'object', 'form'].includes(name))).toEqual([])
  expect(attribute(page, 'src')).toEqual([])
  expect(page).not.toMatch(/@import|url\(/)
})

test('the policy allows only the page’s own style and script, and the page has no inline styles or handlers', async () => {
  const hashOf = (name: string) => {
    const [, text = ''] = new RegExp(`<${name}[^>]*>(.*?)</${name}>`, 's').exec(page) ?? []
    return createHash('sha256').update(text).digest('base64')
  }
  expect(await docsSecurityPolicy(page)).toMatch(
    `default-src 'none'; style-src 'sha256-${hashOf('style')}'; script-src 'sha256-${hashOf('script')}';`,
  )
  expect(attributeNames(page).filter((name) => name === 'style' || name.startsWith('on'))).toEqual([])
})

test('the page uses the portal’s design tokens and logo and links to the portal', async () => {
  const portal = new URL('../../packages/portal/', import.meta.url)
  const [tokens = '', icon = ''] = await Promise.all(
    ['src/style/tokens.css', 'public/icon.svg'].map((path) => readFile(new URL(path, portal), 'utf8')),
  )
  const portalTokens = declarations(tokens)
  const sharedTokens = [...declarations(style)].filter(([name]) => !['--hue', '--tint'].includes(name))
  expect(sharedTokens.length).toBeGreaterThan(20)
  for (const [name, value] of sharedTokens) expect([name, value]).toEqual([name, portalTokens.get(name)])
  expect(mark).toBe(icon.trim())
  expect(attribute(page, 'href')).toContain('/')
  const usedVariables = new Set([...style.matchAll(/var\((--[\w-]+)\)/g)].map(([, name]) => name))
  expect([...usedVariables].filter((name = '') => !declarations(style).has(name))).toEqual([])
})

test('text of the document is escaped', () => {
  const poisonedPage = docsPage(poisonedDocument)
  expect(poisonedPage).not.toContain('<img')
  expect(poisonedPage.split('<script').length).toBe(2)
  expect(new Set(attributeNames(poisonedPage))).toEqual(new Set(attributeNames(page)))
  expect(findMisplaced(poisonedPage)).toBeUndefined()
})

test('the markup is well-formed, with unique ids and without broken links', () => {
  expect(findMisplaced(page)).toBeUndefined()
  const ids = attribute(page, 'id')
  expect(new Set(ids).size).toBe(ids.length)
  const targets = attribute(page, 'href').filter((address) => address.startsWith('#'))
  expect(targets.filter((target) => !ids.includes(target.slice(1)))).toEqual([])
})
