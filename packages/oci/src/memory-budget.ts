/** Limits the memory for concurrent layers, which are held in memory as a whole. */

/** Layers up to `maxUncountedBytes` are not counted. Others share `totalBytes`, the maximum size of one layer. */
const [maxUncountedBytes, totalBytes] = [16 * 2 ** 20, 256 * 2 ** 20]

let availableBytes = totalBytes
const queue: { bytes: number; start: () => void }[] = []

/** Waits for free memory, in order of arrival. Disposing of the result releases the memory. */
export async function reserveMemory(layerBytes: number): Promise<Disposable> {
  const bytes = Math.min(layerBytes, totalBytes)
  if (bytes <= maxUncountedBytes) return { [Symbol.dispose]: () => {} }
  await new Promise<void>((start) => {
    queue.push({ bytes, start })
    startWaiting()
  })
  return {
    [Symbol.dispose]: () => {
      availableBytes += bytes
      startWaiting()
    },
  }
}

function startWaiting(): void {
  for (let first = queue[0]; first !== undefined && first.bytes <= availableBytes; first = queue[0]) {
    queue.shift()
    availableBytes -= first.bytes
    first.start()
  }
}
