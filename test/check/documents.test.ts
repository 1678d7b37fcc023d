import { existsSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { type Capability, capabilitiesOf } from '@platform/contract/endpoint'
import { routes } from '@platform/contract/index'
import { modulePaths } from '@platform/contract/passage'
import { tasks, type Task } from '@platform/contract/task'
import { functionNames } from '@platform/core/updates/function-names'
import { partNames } from '../verification/parts.ts'
import { root } from '../../scripts/source.ts'
import { anchorsOf, linksOf, page, pages } from './support/markdown.ts'
import { titlesOf } from './support/titles.ts'

function capabilitiesOfFunction(name: string): Capability[] {
  const own = routes.filter((route) => route.function === name).flatMap(({ endpoint }) => capabilitiesOf(endpoint))
  const others: Record<string, Pick<Task, 'capabilities'>> = { ...tasks, [modulePaths.function]: modulePaths }
  return [...new Set([...own, ...(others[name]?.capabilities ?? [])])]
}

const all = pages()
const places = all.flatMap((each) => linksOf(each).map((address) => ({ path: each.path, address })))

test('every link of a page has a target', () => {
  const lost = places.filter(({ path, address }) => {
    const [file = '', anchor] = address.split('#')
    const target = file === '' ? path : normalize(join(dirname(path), decodeURI(file)))
    if (!existsSync(join(root, target))) return true
    return anchor !== undefined && target.endsWith('.md') && !anchorsOf(page(target)).has(anchor)
  })
  expect(lost).toEqual([])
})

const cited = all.flatMap(({ path, text }) =>
  [...text.matchAll(/`([\w/.-]+) › ([^`\n]+)`/g)].map(([, file = '', title = '']) => ({ path, file, title })),
)

test('every test that a page names exists', () => {
  expect(cited.length).toBeGreaterThan(100)
  const titles = new Map<string, Set<string>>()
  const known = (file: string): Set<string> => {
    const path = `test/${file}.test.ts`
    const found = titles.get(file) ?? (existsSync(join(root, path)) ? titlesOf(path, page(path)) : new Set())
    titles.set(file, found)
    return found
  }
  expect(cited.filter(({ file, title }) => file !== 'folder/file' && !known(file).has(title))).toEqual([])
})

test('every test file that a page names exists', () => {
  const files = all.flatMap(({ text }) =>
    [...text.matchAll(/`(test\/[\w/.-]+\.test\.tsx?)`/g)].map(([, file = '']) => file),
  )
  expect(files.filter((file) => file !== 'test/folder/file.test.ts' && !existsSync(join(root, file)))).toEqual([])
})

test('every npm command that a page names exists', () => {
  const { scripts } = JSON.parse(page('package.json')) as { scripts: Record<string, string> }
  const named = all.flatMap(({ path, text }) =>
    // Workspaces have their own commands.
    [...text.matchAll(/npm run (?:-s )?([\w:-]+)(?! -w)\b(?!.* -w @platform)/g)].map(([, name = '']) => ({
      path,
      name,
    })),
  )
  expect(named.filter(({ name }) => scripts[name] === undefined)).toEqual([])
})

test('docs/verification.md lists every part of npm run verify', () => {
  const rows = [...page('docs/verification.md').matchAll(/^\| `([\w-]+)` \|/gm)].map(([, name = '']) => name)
  expect(rows.toSorted()).toEqual(partNames.toSorted())
})

test('docs/functions.md lists every function with its capabilities', () => {
  const rows = [...page('docs/functions.md').matchAll(/^\| `([^`]+)` \| .+ \| (.*) \|$/gm)]
  const listed = rows.map(([, name = '', capabilities = '']) => [name, capabilities.split(/[;,]/).length] as const)
  const declared = functionNames.map((name) => [name, Math.max(1, capabilitiesOfFunction(name).length)] as const)
  expect(new Map(listed)).toEqual(new Map(declared))
})
