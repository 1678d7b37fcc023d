import { build } from 'esbuild'
import { fixture } from './module-process.ts'

const bundles = new Map<string, Promise<string>>()

/** A program of test/support/modules in one file, and its arguments. */
export async function programOf(command?: string): Promise<{ program: string; args: string[] }> {
  if (command === undefined) return { program: '', args: [] }
  const [file = '', ...args] = fixture(command).split(' ')
  const program = bundles.get(file) ?? bundled(file)
  bundles.set(file, program)
  return { program: await program, args }
}

async function bundled(file: string): Promise<string> {
  const options = { bundle: true, platform: 'node', format: 'esm', write: false, logLevel: 'error' } as const
  const { outputFiles } = await build({ entryPoints: [file], ...options })
  return outputFiles[0]?.text ?? ''
}
