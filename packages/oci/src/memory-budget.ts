/** Limits the memory for concurrent layers, which are held in memory as a whole. */

/** Layers up to `freeBytes` are not counted. All others share `mostBytes`, the size of the largest possible layer. */
const [freeBytes, mostBytes] = [16 * 2 ** 20, 256 * 2 ** 20]

let leftBytes = mostBytes
const waiting: { bytes: number; begin: () => void }[] = []

/** Waits for free memory, in order of arrival. Disposing of the result releases the memory. */
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
