const isLog = (text: unknown): boolean => typeof text === 'string' && text.startsWith('{"time":')

/** Does some work whose lines of log nobody wants to read; whatever else is printed is printed. */
export async function quietly<Result>(work: () => Promise<Result>): Promise<Result> {
  const write: (...args: any[]) => boolean = process.stdout.write.bind(process.stdout)
  process.stdout.write = (...args: any[]) => isLog(args[0]) || write(...args)
  try {
    return await work()
  } finally {
    process.stdout.write = write
  }
}
