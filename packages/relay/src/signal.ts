/** Lets one loop sleep until another part of the program wakes it. */
export class Signal {
  #finish = () => {}

  wake(): void {
    this.#finish()
  }

  /** Returns when woken, or after the time. */
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
