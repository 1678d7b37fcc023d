import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { placesOf } from '@platform/cli/completion/tree'
import { program } from '@platform/cli/program'
import { ModuleManifest } from '@platform/contract/manifest'
import { moduleErrors } from '@platform/contract/module'
import { expect, test } from 'vitest'
import { Plat } from '../support/plat.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** docs/modules.md repeats parts of the code; these tests compare them. */

const at = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const guide = await readFile(at('docs/modules.md'), 'utf8')

test('the guide documents every module error code', () => {
  const rows = [...guide.matchAll(/^\| `(PLAT-MOD-\d+)` \| (.*?) *\|$/gm)].map(([, code, meaning]) => [code, meaning])
  expect(Object.fromEntries(rows)).toEqual(moduleErrors)
})

test('the guide documents every field of the manifest', () => {
  const { metadata, spec, ...others } = ModuleManifest.shape
  const inner = Object.entries({ metadata, spec }).flatMap(([name, { shape }]) =>
    Object.keys(shape).map((each) => `${name}.${each}`),
  )
  const fields = [...Object.keys(others), ...inner]
  const [, section = ''] = /^### The manifest$(.*?)^### /ms.exec(guide) ?? []
  const named = [...section.matchAll(/^\| (`.*?`) +\|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([\w.$]+)`/g)].map(([, name]) => name),
  )
  expect(new Set(named)).toEqual(new Set(fields))
})

test('docs/cli.md and the guide document every module command', async () => {
  const cli = await readFile(at('docs/cli.md'), 'utf8')
  const module = placesOf(program()).flatMap(({ path }) => /^plat module (\w+)$/.exec(path)?.[1] ?? [])
  const [line = ''] = /^\| `module .*$/m.exec(cli) ?? []
  expect(module.filter((name) => !line.includes(`\`${name}\``) && !line.includes(`\`module ${name}\``))).toEqual([])
  expect(module.filter((name) => !guide.includes(`plat module ${name}`))).toEqual([])
})

test('the samples of the guide compile', async () => {
  await using folder = await temporaryFolder()
  const plat = new Plat(folder.path, { PLAT_DATA_DIR: folder.path }).in(folder.path)
  await plat.prints(['module', 'new', 'greeting'])
  const samples = [...guide.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, text = '']) => text)
  expect(samples.length).toBeGreaterThan(1)
  await mkdir(join(folder.path, 'greeting/src/samples'))
  for (const [index, text] of samples.entries()) {
    await writeFile(join(folder.path, `greeting/src/samples/${index}.ts`), text)
  }
  const tsc = promisify(execFile)(at('node_modules/.bin/tsc'), ['-p', join(folder.path, 'greeting')])
  expect(
    await tsc.then(
      ({ stdout }) => stdout,
      (error: { stdout: string }) => error.stdout,
    ),
  ).toBe('')
})
