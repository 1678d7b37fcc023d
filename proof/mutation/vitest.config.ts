import { resolve } from 'node:path'
import { defineConfig } from 'vitest/config'
import { type Group } from './areas.ts'

/** Stryker copies the project to where it changes it; this file then is one of the copy. */
const root = resolve(import.meta.dirname, '../..')

const { tests, isShared, isPlain }: Group = JSON.parse(process.env['PLAT_MUTATION_GROUP'] ?? '')

/** The tests of one group, over the code of the copy: those packages of ours that are installed are links to the original. */
export default defineConfig({
  root,
  resolve: { alias: [{ find: /^@platform\/(\w+)\/([\w/-]+)$/, replacement: `${root}/packages/$1/src/$2.ts` }] },
  test: {
    include: [...tests],
    testTimeout: 20_000,
    hookTimeout: 60_000,
    isolate: !isShared,
    ...(!isPlain && { globalSetup: ['test/support/stand-ins.ts'], setupFiles: ['proof/mutation/own-table.ts'] }),
  },
})
