import { fileURLToPath } from 'node:url'

const at = (path: string): string => fileURLToPath(new URL(`../../../../${path}`, import.meta.url))

/** The checkout that this command line is part of. It brings the SDK: a module needs no installation of its own. */
export const checkout = {
  folder: at('.'),
  sdk: at('packages/sdk/src/index.ts'),
  libraries: at('node_modules'),
  /** Where the platform of `npm start` keeps its data if nothing says otherwise. */
  data: at('.platform'),
}
