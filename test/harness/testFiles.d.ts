export function testFiles(options: { long: boolean }): { database: string[]; unit: string[] };
