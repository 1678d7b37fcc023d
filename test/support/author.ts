import { build } from 'esbuild'

export function fixture(command: string): string {
  const [name, ...args] = command.split(' ')
  return [`test/support/modules/${name}.ts`, ...args].join(' ')
}

const bundles = new Map<string, Promise<string>>()

export async function programOf(command?: string): Promise<{ program: string; args: string[] }> {
  if (command === undefined) return { program: '', args: [] }
  const [file = '', ...args] = fixture(command).split(' ')
  const program = bundles.get(file) ?? bundle(file)
  bundles.set(file, program)
  return { program: await program, args }
}

async function bundle(file: string): Promise<string> {
  const options = { bundle: true, platform: 'node', format: 'esm', write: false, logLevel: 'error' } as const
  const { outputFiles } = await build({ entryPoints: [file], ...options })
  return outputFiles[0]?.text ?? ''
}
