import { Program } from './program.ts'
import { waitFor } from './wait-for.ts'

export interface CommandOutput {
  output: string
  exitCode: number | undefined
}

const mark = '\u0001ended\u0001'

export class Terminal extends Program {
  constructor(options: { cwd: string; env: NodeJS.ProcessEnv }) {
    super('bash', ['--norc', '--noprofile'], { ...options, input: true })
    // One stream keeps the order of the output.
    this.write('exec 2>&1\n')
  }

  type(command: string): () => CommandOutput {
    const start = this.text.length
    this.write(`{ ${command}\n} </dev/null; printf '\\n${mark}%s\\n' $?\n`)
    return () => {
      const [output = '', end] = this.text.slice(start).split(`\n${mark}`)
      return { output, exitCode: end?.includes('\n') === true ? Number.parseInt(end, 10) : undefined }
    }
  }

  run(command: string): Promise<CommandOutput> {
    const read = this.type(command)
    return waitFor(`${command} ends`, async () => (read().exitCode === undefined ? undefined : read()))
  }
}
