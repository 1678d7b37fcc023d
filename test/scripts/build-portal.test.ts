import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { buildAssets } from '@platform/local/assets'
import { portalPaths } from '@platform/contract/portal-paths'
import { type PortalFiles, unpackFiles } from '@platform/http/portal/pack'
import { beforeAll, expect, test } from 'vitest'
import { buildPortal } from '../../scripts/build-portal.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { isLong } from '../support/long.ts'

const root = join(import.meta.dirname, '../..')

let portal: PortalFiles
beforeAll(async () => {
  // `dist` is shared with the platforms that tests start.
  await buildAssets(join(root, 'dist'), { names: ['portal.pack'] })
  portal = unpackFiles(await readFile(join(root, 'dist/portal.pack')))
})

const textOf = (body: Uint8Array | undefined) => Buffer.from(body ?? []).toString()

test.runIf(isLong)('the same sources give the same bytes', async () => {
  await using folder = await temporaryFolder()
  const build = async (name: string) => {
    await buildPortal(join(folder.path, name))
    return readFile(join(folder.path, name))
  }
  expect((await build('one')).equals(await build('two'))).toBe(true)
})

test('the page contains no inline script or style', () => {
  const page = textOf(portal.shell.bodies.identity)
  const namedPaths = [...page.matchAll(/\b(?:src|href)="([^"]*)"/g)].map(([, path = '']) => path)
  expect(namedPaths.filter((path) => path.endsWith('.js'))).not.toEqual([])
  expect(namedPaths.filter((path) => !portal.files.has(path))).toEqual([])
  expect(page).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\bstyle=|\son\w+=/)
  expect(portal.shell.isHashed).toBe(false)
  expect(portal.files.has('/index.html')).toBe(false)
})

test('only files that are cached forever have a content hash in their name', () => {
  for (const [path, { isHashed }] of portal.files)
    expect([path, /-[\w-]{8}\.\w+$/.test(path)]).toEqual([path, isHashed])
})

test('compressed content is smaller and decompresses to the original', () => {
  for (const { bodies } of [portal.shell, ...portal.files.values()]) {
    const { identity, br, gzip } = bodies
    if (br) expect(brotliDecompressSync(br).equals(identity)).toBe(true)
    if (gzip) expect(gunzipSync(gzip).equals(identity)).toBe(true)
    for (const each of [br, gzip]) expect(each?.length ?? 0).toBeLessThan(identity.length)
  }
  const scripts = [...portal.files].filter(
    ([path, { bodies }]) => path.endsWith('.js') && bodies.identity.length > 1000,
  )
  expect(scripts.filter(([, { bodies }]) => bodies.br === undefined || bodies.gzip === undefined)).toEqual([])
})

test('bundles the production build of React', () => {
  const scripts = [...portal.files.values()].filter(({ contentType }) => contentType.startsWith('text/javascript'))
  expect(scripts.some(({ bodies }) => /react-stack-bottom-frame|jsxDEV/.test(textOf(bodies.identity)))).toBe(false)
})

test("the contract lists exactly the portal's pages", async () => {
  const source = await readFile(join(root, 'packages/portal/src/app/routes.tsx'), 'utf8')
  const routes = [...source.matchAll(/^ +path: '([^']+)'|= page\(\s*'([^']+)'/gm)].map(([, own, path = own ?? '']) =>
    path.replaceAll(/\$(\w+)/g, '{$1}'),
  )
  expect(routes.filter((path) => !path.startsWith('/modules/')).toSorted()).toEqual([...portalPaths].toSorted())
})
