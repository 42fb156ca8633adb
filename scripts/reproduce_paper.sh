#!/usr/bin/env bash
# The paper's tables and figures by its own compositions (Varma et al., arXiv 2607.15216), for owners of GPUs.
#
#   COCO=~/coco MIMIC_JPG=~/mimic-cxr-jpg MIMIC=~/mimic-cxr bash scripts/reproduce_paper.sh [STEP ...]
#
# Steps, in order, all by default: build estimate serve natural medical direct ablation association report. Each goes on
# where it was stopped; what a model has answered once is never asked again, in any step. DRY_RUN=1 prints the commands and
# runs none. Several machines may run the same step at once: RANK and WORLD_SIZE tell them apart.
#
# Needed: COCO 2017 (annotations/, val2017/) and credentialed copies of MIMIC-CXR-JPG and of the MIMIC-CXR reports, MAIRA-2's
# captions (scripts/legacy/maira2) in $MAIRA, and four servers, whose lines `serve` prints. None of this was run by the authors
# of this package, who had no such GPUs; hours are those of `estimate`, at 400 useful teraflops a second (one H100).
set -euo pipefail

OUT=${OUT:-reproduction}
BENCH=$OUT/symbalbench
COCO=${COCO:-coco}
MIMIC_JPG=${MIMIC_JPG:-mimic-cxr-jpg}
MIMIC=${MIMIC:-mimic-cxr}
MAIRA=${MAIRA:-maira2.jsonl}
QWEN=openai:${QWEN_URL:-http://localhost:8001/v1}#Qwen/Qwen2.5-VL-72B-Instruct
MEDGEMMA=openai:${MEDGEMMA_URL:-http://localhost:8002/v1}#google/medgemma-27b-it
LLAMA=openai:${LLAMA_URL:-http://localhost:8003/v1}#meta-llama/Llama-3.3-70B-Instruct
OSS=openai:${OSS_URL:-http://localhost:8004/v1}#openai/gpt-oss-120b
CAPTIONER=hf:meta-llama/Llama-3.2-11B-Vision-Instruct
CLIP=open_clip:ViT-H-14-quickgelu/dfn5b
DINO=transformers:facebook/dinov2-large
XRAY=transformers:StanfordAIMI/XrayCLIP__vit-l-14__laion2b-s32b-b82k
SIGLIP=transformers:google/medsiglip-448
QWEN3=st:Qwen/Qwen3-Embedding-8B

run() {
  printf '%q ' "$@"
  echo
  if [ -z "${DRY_RUN:-}" ]; then "$@"; fi
}

bench() { # NAME METHOD DOMAIN OPTIONS...
  local name=$1 method=$2 domain=$3
  shift 3
  run symbal bench run "$BENCH" --out "$OUT/results/$name" --method "$method" --where "domain=$domain" "$@"
}

build() {
  run symbal bench build --base coco --source "$COCO" --sampling table --out "$BENCH"
  run symbal bench build --base mimic_cxr --source "$MIMIC_JPG" --reports "$MIMIC" --sampling table --out "$BENCH"
  run symbal bench stats "$BENCH"
}

estimate() {
  run symbal estimate "$BENCH" --preset paper-natural --method paper
  run symbal estimate "$BENCH" --preset paper-medical --method paper
}

serve() { # in an environment with vLLM; four 80 GB GPUs each for the first, third and fourth, two for the second
  run symbal serve-command --preset paper-natural --port 8001
  run symbal serve-command --preset paper-medical --port 8002
  echo "vllm serve meta-llama/Llama-3.3-70B-Instruct --tensor-parallel-size 4 --max-model-len 65536 --port 8003"
  echo "vllm serve openai/gpt-oss-120b --tensor-parallel-size 4 --max-model-len 65536 --port 8004"
}

natural() { # Tables 1, 2, 4 and 5, photos; the first row is also the end-to-end composition of Table 6
  local look=vision-language:$QWEN read=text-only:$QWEN
  local base=(--preset paper-natural --captioner "$CAPTIONER")
  local one=(--scorer-1 "$look" --text-encoder "$QWEN3" --summarizer-1 "$read")
  bench natural-qwen3-look-read paper natural "${base[@]}" "${one[@]}" --image-encoder "$CLIP" --scorer-2 "$look" --summarizer-2 "$read"
  local two=(--image-encoder "$CLIP" --scorer-2 "$look" --summarizer-2 "$read")
  bench natural-t-clip-look paper natural "${base[@]}" "${two[@]}" --text-encoder "$CLIP" --scorer-1 "$look" --summarizer-1 "$read"
  bench natural-t-qwen3-read paper natural "${base[@]}" "${two[@]}" --text-encoder "$QWEN3" --scorer-1 "$read" --summarizer-1 "$read"
  bench natural-t-clip-read paper natural "${base[@]}" "${two[@]}" --text-encoder "$CLIP" --scorer-1 "$read" --summarizer-1 "$read"
  local image scorer summarizer
  for image in "$CLIP" "$DINO"; do
    for scorer in "$look" "$read" "embedding:$CLIP"; do
      for summarizer in "$read" "$look"; do
        if [ "$image$scorer$summarizer" = "$CLIP$look$read" ]; then continue; fi # the first row above
        bench "natural-v-$(short "$image")-$(short "$scorer")-$(short "$summarizer")" paper natural "${base[@]}" "${one[@]}" \
          --image-encoder "$image" --scorer-2 "$scorer" --summarizer-2 "$summarizer"
      done
    done
  done
}

medical() { # the same for chest X-rays; captions of MAIRA-2 stand for references where there are none
  local read=text-only:$MEDGEMMA look=vision-language:$MEDGEMMA qwen=text-only:$QWEN
  local base=(--preset paper-medical --captioner "file:$MAIRA")
  local one=(--text-encoder "$XRAY" --scorer-1 "$read" --summarizer-1 "$read")
  local two=(--image-encoder "$XRAY" --scorer-2 "embedding:$SIGLIP" --summarizer-2 "$look")
  bench medical-xray-read-read paper medical "${base[@]}" "${one[@]}" "${two[@]}"
  local text scorer summarizer image
  for text in "$XRAY" "$SIGLIP" "$CLIP"; do
    for scorer in "$read" "$qwen" "$look"; do
      for summarizer in "$read" "$qwen"; do
        if [ "$text$scorer$summarizer" = "$XRAY$read$read" ]; then continue; fi
        bench "medical-t-$(short "$text")-$(short "$scorer")-$(short "$summarizer")" paper medical "${base[@]}" "${two[@]}" \
          --text-encoder "$text" --scorer-1 "$scorer" --summarizer-1 "$summarizer"
      done
    done
  done
  for image in "$XRAY" "$SIGLIP" "$CLIP"; do
    for scorer in "embedding:$SIGLIP" "embedding:$XRAY" "$look" "$read" "$qwen"; do
      for summarizer in "$look" "$qwen"; do
        if [ "$image$scorer$summarizer" = "${XRAY}embedding:$SIGLIP$look" ]; then continue; fi
        bench "medical-v-$(short "$image")-$(short "$scorer")-$(short "$summarizer")" paper medical "${base[@]}" "${one[@]}" \
          --image-encoder "$image" --scorer-2 "$scorer" --summarizer-2 "$summarizer"
      done
    done
  done
}

direct() { # Figure 3 and Table 6: a sample of the dataset in one prompt
  local domain chat
  for chat in "$LLAMA" "$QWEN" "$OSS" "$MEDGEMMA"; do
    for domain in natural medical; do
      if [ "$chat$domain" = "${MEDGEMMA}natural" ]; then continue; fi
      local captions=$CAPTIONER
      if [ "$domain" = medical ]; then captions=file:$MAIRA; fi
      bench "direct-$domain-$(short "$chat")" direct "$domain" --preset "paper-$domain" --chat "$chat" --captioner "$captions" \
        --context-tokens 60000
    done
  done
}

ablation() { # appendix D: no grouping of facts
  bench natural-no-grouping no-grouping natural --preset paper-natural --captioner "$CAPTIONER" \
    --scorer-1 "vision-language:$QWEN" --scorer-2 "vision-language:$QWEN" --summarizer "text-only:$QWEN"
}

association() { # ours, by the same models
  bench natural-association association natural --preset paper-natural --captioner "$CAPTIONER" --scorer "vision-language:$QWEN"
  bench medical-association association medical --preset paper-medical --captioner "file:$MAIRA" --scorer-1 "text-only:$MEDGEMMA"
}

report() { # by the paper's judge
  local folders=("$OUT"/results/*)
  run symbal bench report "${folders[@]}" --benchmark "$BENCH" --judge "$LLAMA" --out "$OUT/report"
  run symbal judge agreement lite "$LLAMA"
}

short() { # a word for a folder's name
  local how= model
  case $1 in vision-language:*) how=look- ;; text-only:*) how=read- ;; embedding:*) how=embed- ;; esac
  case $1 in
    *Qwen2.5*) model=qwen ;; *medgemma*) model=medgemma ;; *Llama-3.3*) model=llama ;; *gpt-oss*) model=gpt-oss ;;
    *XrayCLIP*) model=xrayclip ;; *medsiglip*) model=medsiglip ;; *dinov2*) model=dinov2 ;; *) model=openclip ;;
  esac
  echo "$how$model"
}

steps=("$@")
if [ ${#steps[@]} -eq 0 ]; then steps=(build estimate serve natural medical direct ablation association report); fi
for step in "${steps[@]}"; do
  case $step in
    build | estimate | serve | natural | medical | direct | ablation | association | report) "$step" ;;
    *) echo "no step $step; the steps are build estimate serve natural medical direct ablation association report" >&2; exit 2 ;;
  esac
done
