export const isShort = process.env['PLAT_VERIFY'] !== 'full'

export const seed = Number(process.env['PLAT_VERIFY_SEED'] ?? 20_261_122)

export const amount = <Amount>(full: Amount, short: Amount): Amount => (isShort ? short : full)

/** Returns a function that prints, at most every 20 seconds, how many of a total are done. */
export function progressOf(name: string, total: number): (done: number) => void {
  let printedAtMs = performance.now()
  return (done) => {
    if (performance.now() - printedAtMs < 20_000) return
    printedAtMs = performance.now()
    print(`${name}: ${done} of ${total}`)
  }
}

export const print = (line: string): void => void process.stdout.write(`${line}\n`)
