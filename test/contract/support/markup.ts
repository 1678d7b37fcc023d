const voidElements = new Set(['input', 'meta', 'link', 'path', 'rect'])

const firstGroups = (page: string, pattern: RegExp): string[] =>
  [...page.matchAll(pattern)].map(([, found = '']) => found)

export const attribute = (page: string, name: string): string[] =>
  firstGroups(page, new RegExp(` ${name}="([^"]*)"`, 'g'))

export const elements = (page: string): string[] => firstGroups(page, /<([a-z][a-z0-9]*)/g)

export const attributeNames = (page: string): string[] =>
  firstGroups(page, /<[a-z][a-z0-9]*((?: [a-z-]+="[^"]*")+)/g).flatMap((list) => firstGroups(list, / ([a-z-]+)="/g))

export function findMisplaced(page: string): string | undefined {
  const openTags: string[] = []
  for (const [tag, slash, name = ''] of page.matchAll(/<(\/?)([a-z][a-z0-9]*)[^>]*>/g)) {
    if (voidElements.has(name)) continue
    if (slash === '') openTags.push(name)
    else if (openTags.pop() !== name) return tag
  }
  return openTags.at(-1)
}
