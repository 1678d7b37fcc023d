/** How results beside peers are told apart from others, by whoever reads them. */
export const peersTitle = 'CPU time of an operation, beside peers'
export const shareTitle = 'CPU time without the store, beside peers'
export const peersColumns = ['operation', 'side', 'µs', '× floor', 'min', 'max', '× nest']
