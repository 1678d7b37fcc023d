import { readFile } from 'node:fs/promises'
import type { Plugin } from 'vite'

const files = ['tokens.css', 'module-page.css'].map((name) => new URL(`src/style/${name}`, import.meta.url))

const readStyle = async (): Promise<string> =>
  (await Promise.all(files.map((file) => readFile(file, 'utf8')))).join('\n')

/** Emits the stylesheet for the pages of modules, at a path that does not change with its content. */
export const modulePageStyle = (): Plugin => ({
  name: 'module-page-style',
  async generateBundle() {
    this.emitFile({ type: 'asset', fileName: 'module-page.css', source: await readStyle() })
  },
})
