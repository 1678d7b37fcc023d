/** Lets one loop sleep until another part of the program wakes it. Supports one waiting loop. */
export class Signal {
  #finish = () => {}

  wake(): void {
    this.#finish()
  }

  /** Resolves at the next call of `wake`, or after the timeout. */
  wait(timeoutMs?: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = timeoutMs === undefined ? undefined : setTimeout(resolve, timeoutMs)
      this.#finish = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
