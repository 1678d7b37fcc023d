/** Room in memory for layers, which are read whole: several at once must not take more than there is. */

/** Smaller ones are no burden. Of the larger ones so much is held at once, which is one of the largest. */
const [freeBytes, mostBytes] = [16 * 2 ** 20, 256 * 2 ** 20]

let leftBytes = mostBytes
const waiting: { bytes: number; begin: () => void }[] = []

/** Waits until this process has room for so many bytes, first come first served; disposing of it makes room again. */
export async function reserveMemory(layerBytes: number): Promise<Disposable> {
  const bytes = Math.min(layerBytes, mostBytes)
  if (bytes <= freeBytes) return { [Symbol.dispose]: () => {} }
  await new Promise<void>((begin) => {
    waiting.push({ bytes, begin })
    admit()
  })
  return {
    [Symbol.dispose]: () => {
      leftBytes += bytes
      admit()
    },
  }
}

function admit(): void {
  for (let first = waiting[0]; first !== undefined && first.bytes <= leftBytes; first = waiting[0]) {
    waiting.shift()
    leftBytes -= first.bytes
    first.begin()
  }
}
