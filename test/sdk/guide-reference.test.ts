import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { completionsOf } from '@platform/cli/completion/tree'
import { createProgram } from '@platform/cli/program'
import { ModuleManifest } from '@platform/contract/manifest'
import { moduleErrors } from '@platform/contract/module'
import { expect, test } from 'vitest'

/** docs/modules.md repeats parts of the code. These tests compare the guide with the code. */

const pathOf = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const guide = await readFile(pathOf('docs/modules.md'), 'utf8')

test('the guide documents every module error code', () => {
  const rows = [...guide.matchAll(/^\| `(PLAT-MOD-\d+)` \| (.*?) *\|$/gm)].map(([, code, meaning]) => [code, meaning])
  expect(Object.fromEntries(rows)).toEqual(moduleErrors)
})

test('the guide documents every field of the manifest', () => {
  const { metadata, spec, ...others } = ModuleManifest.shape
  const innerFields = Object.entries({ metadata, spec }).flatMap(([name, { shape }]) =>
    Object.keys(shape).map((each) => `${name}.${each}`),
  )
  const fields = [...Object.keys(others), ...innerFields]
  const [, section = ''] = /^### The manifest$(.*?)^### /ms.exec(guide) ?? []
  const namedFields = [...section.matchAll(/^\| (`.*?`) +\|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([\w.$]+)`/g)].map(([, name]) => name),
  )
  expect(new Set(namedFields)).toEqual(new Set(fields))
})

test('docs/cli.md and the guide document every module command', async () => {
  const cli = await readFile(pathOf('docs/cli.md'), 'utf8')
  const module = completionsOf(createProgram()).flatMap(({ path }) => /^plat module (\w+)$/.exec(path)?.[1] ?? [])
  const [line = ''] = /^\| `module .*$/m.exec(cli) ?? []
  expect(module.filter((name) => !line.includes(`\`${name}\``) && !line.includes(`\`module ${name}\``))).toEqual([])
  expect(module.filter((name) => !guide.includes(`plat module ${name}`))).toEqual([])
})
