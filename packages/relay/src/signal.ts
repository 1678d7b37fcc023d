/** Lets one loop sleep until another part of the program wakes it. */
export class Signal {
  #end = () => {}

  wake(): void {
    this.#end()
  }

  /** Returns when woken, or after the time. */
  wait(timeoutMs?: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = timeoutMs === undefined ? undefined : setTimeout(resolve, timeoutMs)
      this.#end = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
