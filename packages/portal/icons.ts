import imports from 'lucide-react/dynamicIconImports'
import type { Plugin } from 'vite'

type Icons = Record<string, unknown>

/**
 * Emits one JSON file of Lucide icons for each first letter. Module manifests may name any icon, and a single file
 * would be half a megabyte in size.
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

// The library exports the SVG elements of an icon without declaring their type.
function dataOf(icon: object): unknown {
  const { __iconData: data } = { __iconData: undefined, ...icon } as { __iconData?: { node: unknown } }
  if (data === undefined) throw new Error('lucide-react no longer exports the elements of its icons.')
  return data.node
}
