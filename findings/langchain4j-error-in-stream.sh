#!/bin/bash
# One would guess that an error that a model's server sends in the middle of a stream, after status
# 200, reaches the application, as it does with OpenAI's own library.
#
# LangChain4j passes over a chunk that has only `"error"`, as vLLM and OpenAI send it, and calls
# onCompleteResponse with half an answer.
#
# langchain4j-open-ai 1.19.0 (Maven), openai 3.57.0 (PyPI), OpenJDK 17, 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

mvn_get dev.langchain4j:langchain4j-open-ai:1.19.0
pip_get openai==3.57.0
(chunk one && printf 'data: {"error":{"message":"overloaded","code":500}}\n\n') >failed
port=$(free_port)
python3 "$here/events.py" "$port" &
wait_port "$port"
cat >ask.py <<'END'
import sys, openai
client = openai.OpenAI(base_url=sys.argv[1], api_key="x", max_retries=0)
try:
    for chunk in client.chat.completions.create(model="m", stream=True,
                                                messages=[{"role": "user", "content": "?"}]):
        print(chunk.choices[0].delta.content, end=" ")
except openai.APIError as e:
    print(type(e).__name__, e.message)
END
cat >Ask.java <<'END'
import dev.langchain4j.model.chat.response.*;
import dev.langchain4j.model.openai.OpenAiStreamingChatModel;
import java.util.concurrent.CountDownLatch;

class Ask {
	public static void main(String[] args) throws Exception {
		var end = new CountDownLatch(1);
		OpenAiStreamingChatModel.builder().baseUrl(args[0]).apiKey("x").modelName("m").build()
			.chat("?", new StreamingChatResponseHandler() {
				public void onPartialResponse(String text) { }
				public void onCompleteResponse(ChatResponse response) {
					System.out.println("complete: " + response.aiMessage().text());
					end.countDown();
				}
				public void onError(Throwable error) {
					System.out.println("error: " + error.getMessage());
					end.countDown();
				}
			});
		end.await();
		System.exit(0);
	}
}
END
url="http://127.0.0.1:$port/failed"
expect "openai" "one APIError overloaded" "$(py/bin/python ask.py "$url")"
expect "LangChain4j" "complete: one" "$(java -cp 'jars/*' Ask.java "$url" 2>/dev/null)"
