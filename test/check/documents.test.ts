import { existsSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { partNames } from '../../proof/parts.ts'
import { root } from '../../scripts/source.ts'
import { anchorsOf, linksOf, page, pages } from './support/markdown.ts'
import { titlesOf } from './support/titles.ts'

const all = pages()
const places = all.flatMap((each) => linksOf(each).map((address) => ({ path: each.path, address })))

test('every link of a page leads to something that is there', () => {
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

test('every test that a page names is there', () => {
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

test('every command of npm that a page names is there', () => {
  const { scripts } = JSON.parse(page('package.json')) as { scripts: Record<string, string> }
  const named = all.flatMap(({ path, text }) =>
    // A workspace has commands of its own.
    [...text.matchAll(/npm run (?:-s )?([\w:-]+)(?! -w)\b(?!.* -w @platform)/g)].map(([, name = '']) => ({
      path,
      name,
    })),
  )
  expect(named.filter(({ name }) => scripts[name] === undefined)).toEqual([])
})

test('every part of the proof that a page names is there', () => {
  const named = all.flatMap(({ text }) => [...text.matchAll(/`proof\/([\w-]+)`/g)].map(([, name = '']) => name))
  expect(named.filter((name) => !partNames.some((part) => part === name))).toEqual([])
})
