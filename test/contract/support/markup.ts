const empty = new Set(['input', 'meta', 'link', 'path', 'rect'])

const firstGroups = (page: string, pattern: RegExp): string[] =>
  [...page.matchAll(pattern)].map(([, found = '']) => found)

export const attribute = (page: string, name: string): string[] =>
  firstGroups(page, new RegExp(` ${name}="([^"]*)"`, 'g'))

export const elements = (page: string): string[] => firstGroups(page, /<([a-z][a-z0-9]*)/g)

export const attributeNames = (page: string): string[] =>
  firstGroups(page, /<[a-z][a-z0-9]*((?: [a-z-]+="[^"]*")+)/g).flatMap((list) => firstGroups(list, / ([a-z-]+)="/g))

export function misplaced(page: string): string | undefined {
  const open: string[] = []
  for (const [tag, slash, name = ''] of page.matchAll(/<(\/?)([a-z][a-z0-9]*)[^>]*>/g)) {
    if (empty.has(name)) continue
    if (slash === '') open.push(name)
    else if (open.pop() !== name) return tag
  }
  return open.at(-1)
}
