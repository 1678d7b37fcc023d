import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, sources } from '../../../scripts/source.ts'

export interface Page {
  path: string
  text: string
}

export const pages = (): Page[] => sources().filter(({ path }) => path.endsWith('.md'))

export const page = (path: string): string => readFileSync(join(root, path), 'utf8')

/** A page without code blocks and inline code. */
const prose = (text: string): string => text.replaceAll(/^ *```.*?^ *```/gms, '').replaceAll(/`[^`\n]*`/g, '')

/** Links of a page to files and headings of the repository. */
export const linksOf = ({ text }: Page): string[] =>
  [...prose(text).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, address = '']) => (/^\w+:/.test(address) ? [] : [address]))

/** The anchor of a heading, as GitHub generates it. */
const slugOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-')

export const anchorsOf = (text: string): Set<string> =>
  new Set([...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => slugOf(heading.trim())))
