// A node of the service that ends with whoever started it, however that one ended.
process.on('disconnect', () => process.exit())
await import('./main.js')
export {}
