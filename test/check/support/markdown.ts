import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, sources } from '../../../scripts/source.ts'

/** A page of documentation, by its path from the root. */
export interface Page {
  path: string
  text: string
}

/** Every page that people read. */
export const pages = (): Page[] => sources().filter(({ path }) => path.endsWith('.md'))

export const page = (path: string): string => readFileSync(join(root, path), 'utf8')

/** A page without what it quotes: commands and their output, and words in the type of code. */
const prose = (text: string): string => text.replaceAll(/^ *```.*?^ *```/gms, '').replaceAll(/`[^`\n]*`/g, '')

/** The addresses of a page's links that lead to another file or place of the repository. */
export const linksOf = ({ text }: Page): string[] =>
  [...prose(text).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, address = '']) => (/^\w+:/.test(address) ? [] : [address]))

/** The name by which a heading is linked, as GitHub and others make it. */
const slugOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-')

/** The places of a page that a link can name. */
export const anchorsOf = (text: string): Set<string> =>
  new Set([...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => slugOf(heading.trim())))
