import imports from 'lucide-react/dynamicIconImports'
import type { Plugin } from 'vite'

/** Icons by name, each as the elements that it is drawn of: their tags, attributes and keys. */
type Icons = Record<string, unknown>

/**
 * Manifests of modules may name any of Lucide's icons. All of them would be half a megabyte, a file for each thousands of
 * files: they are written as one file for each first letter, which the portal fetches when a module names one of it.
 */
export const iconFiles = (): Plugin => ({
  name: 'icon-files',
  async generateBundle() {
    for (const [letter, icons] of await iconsByLetter()) {
      this.emitFile({ type: 'asset', fileName: `icons/${letter}.json`, source: JSON.stringify(icons) })
    }
  },
  configureServer(server) {
    server.middlewares.use('/icons', (request, response) => {
      const [, letter = ''] = request.url ?? ''
      void iconsByLetter().then((letters) => response.end(JSON.stringify(letters.get(letter) ?? {})))
    })
  },
})

async function iconsByLetter(): Promise<Map<string, Icons>> {
  const letters = new Map<string, Icons>()
  const loaded = Object.entries(imports).map(async ([name, load]) => [name, dataOf(await load())] as const)
  for (const [name, nodes] of await Promise.all(loaded)) {
    const [letter = ''] = name
    letters.set(letter, Object.assign(letters.get(letter) ?? {}, { [name]: nodes }))
  }
  return letters
}

/** The library exports of each icon what it is drawn of, and does not say so in its types. */
function dataOf(icon: object): unknown {
  const { __iconData: data } = { __iconData: undefined, ...icon } as { __iconData?: { node: unknown } }
  if (data === undefined) throw new Error('lucide-react no longer exports what its icons are drawn of.')
  return data.node
}
