import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Plat } from '../../support/plat.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

export interface Author extends AsyncDisposable {
  plat: Plat
  folder: string
  module: string
  change: (file: string, before: string | RegExp, after: string) => Promise<void>
}

export async function startAuthor(environment: Record<string, string> = {}, image?: string): Promise<Author> {
  await using starting = new AsyncDisposableStack()
  const { path: folder } = starting.use(await temporaryFolder())
  const plat = new Plat(folder, { PLAT_DATA_DIR: join(folder, 'data'), ...environment }).in(folder)
  await plat.prints(['module', 'new', 'greeting', ...(image === undefined ? [] : ['--image', image])])
  const module = join(folder, 'greeting')
  const started = starting.move()
  return {
    plat,
    folder,
    module,
    async change(file, before, after) {
      const path = join(module, file)
      const text = await readFile(path, 'utf8')
      const changedText = text.replaceAll(typeof before === 'string' ? before : new RegExp(before, 'g'), () => after)
      if (changedText === text) throw new Error(`${path} does not contain ${String(before)}.`)
      await writeFile(path, changedText)
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  }
}
